//! Tool sources over the Model Context Protocol, and the supervision of their processes.
