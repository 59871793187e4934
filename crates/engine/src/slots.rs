//! How many of something there may be at once, over all and for one user.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnwright_core::UserId;

/// Counts what runs at once. Cheap to clone; all clones count together. Without limits until [`Slots::limit`].
#[derive(Debug, Clone)]
pub struct Slots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: AtomicUsize,
    most_of_user: AtomicUsize,
    taken: Mutex<Taken>,
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
        Self(Arc::new(Shared { most, most_of_user, taken: Mutex::default() }))
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
        let mut taken = self.0.taken();
        self.0.room(&taken, user)?;
        Ok(self.entered(&mut taken, user))
    }

    /// Whether there is room for one more.
    ///
    /// # Errors
    /// [`Full`], which says for whom there is none.
    pub fn has_room(&self, user: &UserId) -> Result<(), Full> {
        self.0.room(&self.0.taken(), user)
    }

    /// Whether there is room for nobody.
    pub(crate) fn is_full(&self) -> bool {
        self.0.taken().all >= self.0.most.load(Ordering::Relaxed)
    }

    /// One more, whatever the limits say.
    pub fn enter(&self, user: &UserId) -> Slot {
        self.entered(&mut self.0.taken(), user)
    }

    fn entered(&self, taken: &mut Taken, user: &UserId) -> Slot {
        taken.all = taken.all.saturating_add(1);
        match taken.of.get_mut(user) {
            Some(count) => *count = count.saturating_add(1),
            None => {
                taken.of.insert(user.clone(), 1);
            }
        }
        Slot { user: user.clone(), shared: self.0.clone() }
    }
}

impl Shared {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn room(&self, taken: &Taken, user: &UserId) -> Result<(), Full> {
        let most = self.most.load(Ordering::Relaxed);
        if taken.all >= most {
            return Err(Full::ForAll { most });
        }
        let most = self.most_of_user.load(Ordering::Relaxed);
        match taken.of.get(user) {
            Some(count) if *count >= most => Err(Full::ForUser { most }),
            None if most == 0 => Err(Full::ForUser { most }),
            Some(_) | None => Ok(()),
        }
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
}
