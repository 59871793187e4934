//! Model providers over HTTP, one implementation parameterised by dialect, and the practice model.
