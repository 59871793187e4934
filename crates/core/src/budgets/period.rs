//! Days and calendar months, UTC, without a calendar of the system's.

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

/// Whole days, counted from 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// The first.
    pub from_day: u64,
    /// The first that is not in it any more.
    pub until_day: u64,
}

impl Period {
    /// The day of a moment, in milliseconds since 1970 UTC.
    pub fn day_of(at_ms: u64) -> Self {
        let day = at_ms / DAY_MS;
        Self { from_day: day, until_day: day.saturating_add(1) }
    }

    /// The calendar month of a moment, in milliseconds since 1970 UTC.
    pub fn month_of(at_ms: u64) -> Self {
        let day = at_ms / DAY_MS;
        let (year, month, of_month) = date(day);
        let from_day = day.saturating_sub(of_month.saturating_sub(1));
        let next = if month == 12 { first_of(year.saturating_add(1), 1) } else { first_of(year, month.saturating_add(1)) };
        Self { from_day, until_day: next }
    }

    /// When it is over, in milliseconds since 1970 UTC.
    pub fn ends_at_ms(self) -> u64 {
        self.until_day.saturating_mul(DAY_MS)
    }
}

/// Days of a cycle of 400 years, after which the calendar repeats.
const CYCLE_DAYS: u64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01. Counted from a first of March, a leap day is the last of its year.
const EPOCH: u64 = 719_468;

/// Year, month and day of the month of a day since 1970-01-01, in the Gregorian calendar.
pub(super) fn date(day: u64) -> (u64, u64, u64) {
    let day = day.saturating_add(EPOCH);
    let of_cycle = day % CYCLE_DAYS;
    let year_of_cycle = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (day / CYCLE_DAYS * 400 + year_of_cycle + u64::from(month <= 2), month, of_month)
}

/// The first day of a month, in days since 1970-01-01.
fn first_of(year: u64, month: u64) -> u64 {
    let (year, from_march) = if month <= 2 { (year.saturating_sub(1), month + 9) } else { (year, month - 3) };
    let (cycle, of_cycle) = (year / 400, year % 400);
    let day = cycle * CYCLE_DAYS + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + (153 * from_march + 2) / 5;
    day.saturating_sub(EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_months_are_those_of_the_calendar() {
        // Checked against `date -u -d @…`.
        let rows = [
            (0, (1970, 1, 1), (0, 31)),
            (11_016, (2000, 2, 29), (10_988, 11_017)),
            (19_782, (2024, 2, 29), (19_754, 19_783)),
            (20_453, (2025, 12, 31), (20_423, 20_454)),
            (20_780, (2026, 11, 23), (20_758, 20_788)),
        ];
        for (day, expected, (from_day, until_day)) in rows {
            assert_eq!(date(day), expected, "{day}");
            let at_ms = day * DAY_MS + DAY_MS - 1;
            assert_eq!(Period::month_of(at_ms), Period { from_day, until_day }, "{day}");
            assert_eq!(Period::day_of(at_ms), Period { from_day: day, until_day: day + 1 });
            assert_eq!(Period::day_of(at_ms).ends_at_ms(), (day + 1) * DAY_MS);
        }
        // Every day follows the one before it, and every month is whole.
        let mut month = Period::month_of(0);
        for day in 1..80_000 {
            let now = Period::month_of(day * DAY_MS);
            assert!(now == month || (now.from_day == month.until_day && now.from_day == day), "{day}");
            assert_eq!(date(day).2, day - now.from_day + 1);
            month = now;
        }
    }
}
