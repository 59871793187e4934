//! Values of a statement: as they come, and as they are sent, which nobody else needs to keep any more.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use turnwright_engine::StoreError;

/// Values of a statement.
pub(crate) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A value in PostgreSQL's own form; none where it is null.
#[derive(Debug)]
pub(super) struct Written(Option<BytesMut>);

impl Written {
    /// All values of a statement, as the types of its parameters want them. Refused where one does not fit.
    pub(super) fn all(shown: &str, values: Values<'_>, types: &[Type]) -> Result<Vec<Self>, StoreError> {
        let unfit = |what: String| StoreError::Damaged {
            what: format!("the database `{shown}`"),
            reason: format!("it has something else than was expected: {what}"),
        };
        if values.len() != types.len() {
            return Err(unfit(format!("{} parameters for {} values", types.len(), values.len())));
        }
        let write = |(value, of): (&&(dyn ToSql + Sync), &Type)| {
            let mut bytes = BytesMut::new();
            match value.to_sql_checked(of, &mut bytes) {
                Ok(IsNull::No) => Ok(Self(Some(bytes))),
                Ok(IsNull::Yes) => Ok(Self(None)),
                Err(error) => Err(unfit(error.to_string())),
            }
        };
        values.iter().zip(types).map(write).collect()
    }
}

impl ToSql for Written {
    fn to_sql(&self, _of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Some(bytes) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_of: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_sent_as_the_value_itself() {
        let (text, none, many) = ("é\n", None::<i64>, vec![Some("a"), None]);
        let types = [Type::TEXT, Type::INT8, Type::TEXT_ARRAY];
        let values: [&(dyn ToSql + Sync); 3] = [&text, &none, &many];
        let written = Written::all("db", &values, &types).unwrap();
        for ((value, written), of) in values.iter().zip(&written).zip(&types) {
            let (mut direct, mut again) = (BytesMut::new(), BytesMut::new());
            let nulls = (value.to_sql_checked(of, &mut direct).unwrap(), written.to_sql_checked(of, &mut again).unwrap());
            assert_eq!(matches!(nulls.0, IsNull::Yes), matches!(nulls.1, IsNull::Yes), "{of}");
            assert_eq!(direct, again, "{of}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused() {
        let values: [&(dyn ToSql + Sync); 1] = [&"words"];
        for types in [&[Type::INT8][..], &[], &[Type::TEXT, Type::TEXT]] {
            let refused = Written::all("db", &values, types).unwrap_err();
            assert!(refused.to_string().contains("something else than was expected"), "{types:?}: {refused}");
        }
    }
}
