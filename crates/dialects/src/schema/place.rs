//! Where in a schema one is.

/// A place, as the way to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    segment: &'a str,
}

impl Place<'_> {
    pub(super) const ROOT: Place<'static> = Place { parent: None, segment: "" };

    /// The member `segment` of what is here.
    pub(super) fn child<'b>(&'b self, segment: &'b str) -> Place<'b> {
        Place { parent: Some(self), segment }
    }

    /// The place as a JSON pointer (RFC 6901).
    pub(super) fn pointer(&self) -> String {
        let mut segments = Vec::new();
        let mut place = self;
        while let Some(parent) = place.parent {
            segments.push(place.segment);
            place = parent;
        }
        let mut pointer = String::new();
        for segment in segments.into_iter().rev() {
            pointer.push('/');
            for c in segment.chars() {
                match c {
                    '~' => pointer.push_str("~0"),
                    '/' => pointer.push_str("~1"),
                    c => pointer.push(c),
                }
            }
        }
        pointer
    }
}
