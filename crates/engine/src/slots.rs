//! How many of something there may be at once, over all and for one user.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use turnwright_core::UserId;

/// Counts what runs at once. Cheap to clone; all clones count together. Without limits until [`Slots::limit`].
#[derive(Debug, Clone)]
pub struct Slots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: AtomicUsize,
    most_of_user: AtomicUsize,
    taken: Mutex<Taken>,
    /// Wakes whoever tells others how many there are.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<UserId, usize>,
}

/// One that counts until it is dropped.
#[derive(Debug)]
pub struct Slot {
    user: UserId,
    shared: Arc<Shared>,
}

/// There is no room for one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// For nobody.
    ForAll {
        /// How many there may be.
        most: usize,
    },
    /// For this user.
    ForUser {
        /// How many one user may have.
        most: usize,
    },
}

impl Default for Slots {
    fn default() -> Self {
        Self::new(usize::MAX, usize::MAX)
    }
}

impl Slots {
    /// At most `most` at once, and at most `most_of_user` of one user.
    pub fn new(most: usize, most_of_user: usize) -> Self {
        let (most, most_of_user) = (AtomicUsize::new(most), AtomicUsize::new(most_of_user));
        Self(Arc::new(Shared { most, most_of_user, taken: Mutex::default(), changed: Notify::new() }))
    }

    /// Other limits from now on; what is there already stays.
    pub fn limit(&self, most: usize, most_of_user: usize) {
        self.0.most.store(most, Ordering::Relaxed);
        self.0.most_of_user.store(most_of_user, Ordering::Relaxed);
    }

    /// One more, where there is room.
    ///
    /// # Errors
    /// [`Full`], which says for whom.
    pub fn try_enter(&self, user: &UserId) -> Result<Slot, Full> {
        self.try_enter_beside(user, 0)
    }

    /// One more, where there is room beside so many that the user has elsewhere: those count towards what one user may have, not
    /// towards how many there may be here.
    ///
    /// # Errors
    /// [`Full`], which says for whom.
    pub fn try_enter_beside(&self, user: &UserId, elsewhere: usize) -> Result<Slot, Full> {
        let mut taken = self.0.taken();
        self.0.room(&taken, user, elsewhere)?;
        Ok(self.entered(&mut taken, user))
    }

    /// Whether there is room for one more.
    ///
    /// # Errors
    /// [`Full`], which says for whom there is none.
    pub fn has_room(&self, user: &UserId) -> Result<(), Full> {
        self.0.room(&self.0.taken(), user, 0)
    }

    /// Whether there is room for nobody.
    pub(crate) fn is_full(&self) -> bool {
        self.0.taken().all >= self.0.most.load(Ordering::Relaxed)
    }

    /// One more, whatever the limits say.
    pub fn enter(&self, user: &UserId) -> Slot {
        self.entered(&mut self.0.taken(), user)
    }

    /// Waits until there are more or fewer than at the last wait. For one reader.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// The users who have at least a `part`th of what one may have, and at least one, with how many each has: at most `most` users,
    /// those who have the most.
    pub fn busiest(&self, part: usize, most: usize) -> BTreeMap<UserId, usize> {
        let least = self.0.most_of_user.load(Ordering::Relaxed).checked_div(part).unwrap_or(1).max(1);
        let taken = self.0.taken();
        let mut users: Vec<_> = taken.of.iter().filter(|(_, count)| **count >= least).collect();
        if users.len() > most {
            users.sort_unstable_by(|(_, one), (_, other)| other.cmp(one));
            users.truncate(most);
        }
        users.into_iter().map(|(user, count)| (user.clone(), *count)).collect()
    }

    fn entered(&self, taken: &mut Taken, user: &UserId) -> Slot {
        taken.all = taken.all.saturating_add(1);
        match taken.of.get_mut(user) {
            Some(count) => *count = count.saturating_add(1),
            None => {
                taken.of.insert(user.clone(), 1);
            }
        }
        self.0.changed.notify_one();
        Slot { user: user.clone(), shared: self.0.clone() }
    }
}

impl Shared {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn room(&self, taken: &Taken, user: &UserId, elsewhere: usize) -> Result<(), Full> {
        let most = self.most.load(Ordering::Relaxed);
        if taken.all >= most {
            return Err(Full::ForAll { most });
        }
        let most = self.most_of_user.load(Ordering::Relaxed);
        let count = taken.of.get(user).copied().unwrap_or(0).saturating_add(elsewhere);
        if count >= most { Err(Full::ForUser { most }) } else { Ok(()) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.shared.taken();
        taken.all = taken.all.saturating_sub(1);
        let left = taken.of.get_mut(&self.user).map(|count| {
            *count = count.saturating_sub(1);
            *count
        });
        if left == Some(0) {
            taken.of.remove(&self.user);
        }
        self.shared.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::{Full, Slots};

    #[test]
    fn each_user_has_a_limit_and_all_together_have_one_and_what_is_dropped_makes_room() {
        let slots = Slots::new(3, 2);
        let (ada, bob, eve) = ("ada".parse().unwrap(), "bob".parse().unwrap(), "eve".parse().unwrap());
        let first = slots.try_enter(&ada).unwrap();
        let _second = slots.try_enter(&ada).unwrap();
        assert_eq!(slots.try_enter(&ada).unwrap_err(), Full::ForUser { most: 2 });
        let _third = slots.try_enter(&bob).unwrap();
        assert_eq!(slots.has_room(&eve), Err(Full::ForAll { most: 3 }));
        drop(first);
        assert_eq!(slots.has_room(&eve), Ok(()));
        let _again = slots.try_enter(&ada).unwrap();
        // What must run runs, and counts.
        let _beyond = slots.enter(&bob);
        slots.limit(4, 4);
        assert_eq!(slots.try_enter(&ada).unwrap_err(), Full::ForAll { most: 4 });
    }

    #[test]
    fn what_a_user_has_elsewhere_counts_towards_the_users_limit_alone() {
        let slots = Slots::new(2, 3);
        let (ada, bob) = ("ada".parse().unwrap(), "bob".parse().unwrap());
        let first = slots.try_enter_beside(&ada, 2).unwrap();
        assert_eq!(slots.try_enter_beside(&ada, 2).unwrap_err(), Full::ForUser { most: 3 });
        assert_eq!(slots.try_enter_beside(&bob, 3).unwrap_err(), Full::ForUser { most: 3 });
        drop(first);
        let _of_each = (slots.try_enter_beside(&ada, 2).unwrap(), slots.try_enter_beside(&bob, 2).unwrap());
        assert_eq!(slots.try_enter(&bob).unwrap_err(), Full::ForAll { most: 2 });
    }

    #[test]
    fn the_busiest_are_those_who_have_a_part_of_what_one_may_have_and_no_more_than_asked_for() {
        let slots = Slots::new(usize::MAX, 8);
        let [ada, bob, eve] = ["ada", "bob", "eve"].map(|name| name.parse().unwrap());
        let mut held = vec![slots.enter(&eve)];
        held.extend([slots.enter(&ada), slots.enter(&ada), slots.enter(&ada), slots.enter(&bob), slots.enter(&bob)]);
        let (ada, bob, eve) = ((ada, 3), (bob, 2), (eve, 1));
        // The least is one, also where the part is larger than the limit.
        assert_eq!(slots.busiest(64, 9), [ada.clone(), bob.clone(), eve].into());
        assert_eq!(slots.busiest(4, 9), [ada.clone(), bob].into());
        assert_eq!(slots.busiest(64, 1), [ada].into());
        held.clear();
        assert_eq!(slots.busiest(64, 9), [].into());
    }
}
