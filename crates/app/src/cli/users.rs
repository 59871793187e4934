//! Users and what they are known by, as they can be typed.

use clap::{Args, Subcommand};

use super::Listed;

/// Users.
#[derive(Debug, Subcommand)]
pub(crate) enum Users {
    /// Add somebody who may sign in
    Add(AddUser),
    /// List who may sign in
    List(Listed),
    /// Make somebody an admin, or a member
    Role {
        /// The user's name or id
        #[arg(value_name = "USER")]
        who: String,
        /// admin or member
        #[arg(value_parser = role)]
        role: turnwright_engine::accounts::Role,
    },
    /// Keep somebody out; nothing that is theirs is lost
    Disable {
        /// The user's name or id
        #[arg(value_name = "USER")]
        who: String,
    },
    /// Let somebody in again
    Enable {
        /// The user's name or id
        #[arg(value_name = "USER")]
        who: String,
    },
    /// Remove somebody with all tokens and sessions; their conversations stay stored
    Remove {
        /// The user's name or id
        #[arg(value_name = "USER")]
        who: String,
    },
    /// Make a token; it is printed this once
    Token(NewToken),
    /// List somebody's tokens and sessions
    Tokens {
        /// The user's name or id
        #[arg(value_name = "USER")]
        who: String,
        #[command(flatten)]
        listed: Listed,
    },
    /// Revoke a token or session
    Revoke {
        /// Its id, such as `token_3f…`; `users tokens NAME` lists them
        id: String,
    },
    /// Make a link that signs a browser in, once, within 15 minutes
    Link {
        /// The user's name or id
        #[arg(value_name = "USER")]
        who: String,
    },
}

/// Somebody to add.
#[derive(Debug, Args)]
pub(crate) struct AddUser {
    /// What people call the user
    pub(crate) name: String,
    /// admin or member
    #[arg(long, value_name = "ROLE", default_value = "member", value_parser = role)]
    pub(crate) role: turnwright_engine::accounts::Role,
}

/// A token to make.
#[derive(Debug, Args)]
pub(crate) struct NewToken {
    /// The user's name or id
    #[arg(value_name = "USER")]
    pub(crate) who: String,
    /// What the token is called
    #[arg(long, value_name = "NAME", default_value = "token")]
    pub(crate) name: String,
    /// What may be done with it: read, chat, approve, admin; the first three unless given
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',', value_parser = scope)]
    pub(crate) scopes: Vec<turnwright_engine::accounts::Scope>,
    /// After which time it stops counting, such as 90d or 12h; never unless given
    #[arg(long, value_name = "TIME", value_parser = time_ms)]
    pub(crate) expires: Option<u64>,
}

fn role(word: &str) -> Result<turnwright_engine::accounts::Role, String> {
    word.parse()
}

fn scope(word: &str) -> Result<turnwright_engine::accounts::Scope, String> {
    word.parse()
}

/// A time such as `90d`, in milliseconds.
fn time_ms(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no time; write a number and m, h, d or w, such as 90d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number: u64 = text.strip_suffix(unit).and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
    let unit_ms = match unit {
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 24 * 3_600_000,
        'w' => 7 * 24 * 3_600_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit_ms).filter(|time_ms| (1..=u64::from(u32::MAX) * 60_000).contains(time_ms)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::time_ms;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        assert_eq!(time_ms("90d"), Ok(90 * 24 * 3_600_000));
        assert_eq!(time_ms("15m"), Ok(900_000));
        for wrong in ["", "d", "90", "-1d", "0d", "1y", "99999999999999999999d", "1 d", "9é"] {
            assert!(time_ms(wrong).is_err(), "{wrong}");
        }
    }
}
