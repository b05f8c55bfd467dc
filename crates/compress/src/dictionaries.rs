//! The set of dictionaries in use, which all threads share.
//!
//! A set is immutable. A change publishes a new one, and threads notice by the generation, one
//! load for each value. A dictionary that no group uses any more stays in the set as long as values
//! need it.

use crate::dictionary::{CONTENT_START, Dictionary, DictionaryStats, set_dictionary_id};
use crate::error::{Error, Result};
use crate::folder::DictionaryFolder;
use crate::group::GroupId;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Default of the limit for all dictionaries, in bytes.
pub const DEFAULT_MEMORY_LIMIT: usize = 64 << 20;

/// The dictionaries of a cache.
#[derive(Debug)]
pub struct Dictionaries {
    level: i32,
    memory_limit: usize,
    generation: AtomicU64,
    state: Mutex<State>,
    /// The folder of all dictionaries, if values on disk need them.
    folder: Option<DictionaryFolder>,
}

#[derive(Debug)]
struct State {
    set: Arc<Set>,
    /// Sets that were replaced, and that a thread may still use.
    replaced: Vec<Weak<Set>>,
    /// The names of the groups of the set.
    names: BTreeMap<GroupId, Vec<u8>>,
    /// The greatest id so far.
    max_id: u32,
}

impl State {
    /// Forgets the older sets that no thread uses any more.
    fn drop_unused_sets(&mut self) {
        self.replaced.retain(|set| set.strong_count() > 0);
        // Pairs with the release of the last reference to each of these sets: what its threads
        // counted is visible from here on.
        fence(Ordering::Acquire);
    }
}

/// An immutable set of dictionaries, and which group uses which.
#[derive(Clone, Debug, Default)]
pub(crate) struct Set {
    pub(crate) generation: u64,
    /// Sorted by id.
    dictionaries: Vec<Arc<Dictionary>>,
    /// The groups that were evaluated, sorted. A group without a dictionary is compressed without
    /// one.
    groups: Vec<(GroupId, Option<Arc<Dictionary>>)>,
    /// The dictionary of all other groups.
    rest: Option<Arc<Dictionary>>,
}

impl Set {
    /// Returns the dictionary with this id.
    #[inline]
    pub(crate) fn find(&self, id: u32) -> Option<&Arc<Dictionary>> {
        let at = self.dictionaries.binary_search_by_key(&id, |found| found.id().get()).ok()?;
        self.dictionaries.get(at)
    }

    /// Returns the dictionary for new values of a group.
    #[inline]
    pub(crate) fn of_group(&self, group: GroupId) -> Option<&Arc<Dictionary>> {
        match self.groups.binary_search_by_key(&group, |(found, _)| *found) {
            Ok(at) => self.groups[at].1.as_ref(),
            Err(_) => self.rest.as_ref(),
        }
    }

    /// Returns whether new values of any group can get a dictionary.
    #[inline]
    pub(crate) fn has_dictionaries(&self) -> bool {
        !self.dictionaries.is_empty()
    }

    fn assign(&mut self, group: GroupId, dictionary: Option<Arc<Dictionary>>) {
        if group == GroupId::REST {
            self.rest = dictionary;
            return;
        }
        match self.groups.binary_search_by_key(&group, |(found, _)| *found) {
            Ok(at) => self.groups[at].1 = dictionary,
            Err(at) => self.groups.insert(at, (group, dictionary)),
        }
    }

    fn is_assigned(&self, id: NonZeroU32) -> bool {
        let groups = self.groups.iter().filter_map(|(_, dictionary)| dictionary.as_ref());
        groups.chain(&self.rest).any(|dictionary| dictionary.id() == id)
    }

    fn memory_bytes(&self) -> usize {
        self.dictionaries.iter().map(|dictionary| dictionary.memory_bytes()).sum()
    }
}

impl Dictionaries {
    /// Creates an empty set. New values are compressed at `level`; all dictionaries together need
    /// at most `memory_limit` bytes, prepared.
    pub fn new(level: i32, memory_limit: usize) -> Self {
        let (set, replaced, names) = (Arc::default(), Vec::new(), BTreeMap::new());
        let state = Mutex::new(State { set, replaced, names, max_id: 0 });
        Self { level, memory_limit, generation: AtomicU64::new(0), state, folder: None }
    }

    /// Adds the dictionaries of a folder, for reading, and saves each new dictionary in it before
    /// any value is compressed with it. No dictionary is removed from the set any more, since
    /// values that are not counted may need it.
    ///
    /// If the limit of the set is reached, the dictionaries with the lowest ids are left out.
    /// Returns the ids of the dictionaries that could not be added, and the reasons.
    ///
    /// # Errors
    ///
    /// Returns [`Error::File`] if the system refuses to read a file.
    pub fn keep_in(&mut self, folder: DictionaryFolder) -> Result<Vec<(NonZeroU32, Error)>> {
        let mut left_out = Vec::new();
        for (id, bytes) in folder.read()? {
            let added = bytes.and_then(|bytes| {
                let dictionary = Arc::new(Dictionary::for_reading(&bytes, self.level)?);
                self.publish(|set, _| self.insert(set, &dictionary))
            });
            if let Err(error) = added {
                left_out.push((id, error));
            }
        }
        let mut state = self.lock();
        state.max_id = state.max_id.max(folder.max_id());
        drop(state);
        self.folder = Some(folder);
        Ok(left_out)
    }

    /// Returns the level of compression.
    pub fn level(&self) -> i32 {
        self.level
    }

    /// Returns the limit for all dictionaries in bytes.
    pub fn memory_limit(&self) -> usize {
        self.memory_limit
    }

    /// Returns the memory of all dictionaries in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.lock().set.memory_bytes()
    }

    /// Adds a dictionary that values need, such as one that was saved. No group uses it for new
    /// values. Adding the same dictionary again changes nothing.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotADictionary`], [`Error::DuplicateId`] if another dictionary has the same
    /// id, or [`Error::NoRoom`].
    pub fn add(&self, bytes: &[u8]) -> Result<Arc<Dictionary>> {
        let dictionary = Arc::new(Dictionary::new(bytes, self.level)?);
        self.save_new(&dictionary)?;
        self.publish(|set, _| {
            self.insert(set, &dictionary)?;
            Ok(set.find(dictionary.id().get()).map_or(dictionary, Arc::clone))
        })
    }

    /// Adds a dictionary and uses it for the new values of all groups. Values that need other
    /// dictionaries keep them. If values in a [folder](Self::keep_in) may need another dictionary
    /// with the same id, the dictionary gets a new one.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::add`].
    pub fn use_for_all(&self, bytes: &[u8]) -> Result<Arc<Dictionary>> {
        let dictionary = match &self.folder {
            Some(folder) => self.add(&self.with_free_id(bytes, folder)?)?,
            None => self.add(bytes)?,
        };
        self.publish(|set, names| {
            set.groups.clear();
            names.clear();
            set.assign(GroupId::REST, Some(Arc::clone(&dictionary)));
            names.insert(GroupId::REST, Vec::new());
            Ok(())
        })?;
        Ok(dictionary)
    }

    /// Returns the bytes of a dictionary with an id that no other dictionary has or had. That of a
    /// dictionary in the set with the same content is preferred.
    fn with_free_id(&self, bytes: &[u8], folder: &DictionaryFolder) -> Result<Vec<u8>> {
        let dictionary = Dictionary::new(bytes, self.level)?;
        if folder.may_have_id(&dictionary) {
            return Ok(bytes.to_vec());
        }
        let content = |dictionary: &Dictionary| dictionary.as_bytes()[CONTENT_START..].to_vec();
        let same = self.all().into_iter().find(|found| content(found) == content(&dictionary));
        if let Some(same) = same {
            return Ok(same.as_bytes().to_vec());
        }
        let mut bytes = bytes.to_vec();
        let id = self.next_id().ok_or(Error::DuplicateId { id: u32::MAX })?;
        set_dictionary_id(&mut bytes, id)?;
        Ok(bytes)
    }

    /// Writes a dictionary to the folder, if there is one, before it is added to the set. Threads
    /// that use the set do not wait meanwhile.
    fn save_new(&self, dictionary: &Arc<Dictionary>) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        // One that cannot be added is not saved.
        self.insert(&mut Set::clone(&self.current()), dictionary)?;
        folder.save(dictionary)
    }

    /// Uses no dictionary for new values from now on.
    pub fn use_none(&self) {
        let _ = self.publish(|set, names| {
            set.groups.clear();
            set.rest = None;
            names.clear();
            Ok(())
        });
    }

    /// Returns the dictionary with this id.
    pub fn find(&self, id: NonZeroU32) -> Option<Arc<Dictionary>> {
        self.lock().set.find(id.get()).map(Arc::clone)
    }

    /// Counts values that were recovered and need a dictionary. Returns whether the dictionary is
    /// in the set; otherwise the values cannot be decompressed.
    ///
    /// A value that a [`Codec`](crate::Codec) compresses is counted already.
    #[must_use]
    pub fn retain(&self, id: NonZeroU32, values: u64, raw_bytes: u64, encoded_bytes: u64) -> bool {
        let state = self.lock();
        let found = state.set.find(id.get());
        found.inspect(|found| found.retain(values, raw_bytes, encoded_bytes)).is_some()
    }

    /// Removes the dictionaries that no group uses and no value needs. Returns their ids.
    ///
    /// Removes none while a codec still uses an older set, because it may be compressing a value
    /// with one of them. A codec switches to the current set with its next value, or by
    /// [`Codec::refresh`](crate::Codec::refresh). Removes none if the set has a
    /// [folder](Self::keep_in).
    pub fn reclaim(&self) -> Vec<NonZeroU32> {
        if self.folder.is_some() {
            return Vec::new();
        }
        let mut state = self.lock();
        state.drop_unused_sets();
        if !state.replaced.is_empty() {
            return Vec::new();
        }
        let is_needed =
            |found: &Arc<Dictionary>| found.values() > 0 || state.set.is_assigned(found.id());
        let (needed, removed): (Vec<_>, Vec<_>) =
            state.set.dictionaries.iter().cloned().partition(is_needed);
        if removed.is_empty() {
            return Vec::new();
        }
        let set = Set { dictionaries: needed, ..Set::clone(&state.set) };
        self.replace(&mut state, set);
        removed.iter().map(|dictionary| dictionary.id()).collect()
    }

    /// Returns the dictionaries that no group uses, but that values need as far as they are
    /// counted. Returns none while a codec still uses an older set, with which it may compress
    /// values with one of these dictionaries.
    ///
    /// An application that does not call [`Codec::release`](crate::Codec::release) can count the
    /// values that need them, and then call [`Self::recount`]. Meanwhile it must not copy a
    /// compressed value to a place where it has counted already. Returns none if the set has a
    /// [folder](Self::keep_in), since the counts do not matter then.
    pub fn unassigned(&self) -> Vec<NonZeroU32> {
        if self.folder.is_some() {
            return Vec::new();
        }
        let mut state = self.lock();
        state.drop_unused_sets();
        if !state.replaced.is_empty() {
            return Vec::new();
        }
        let all = state.set.dictionaries.iter().map(|dictionary| (dictionary.id(), dictionary));
        let unassigned =
            all.filter(|(id, dictionary)| dictionary.values() > 0 && !state.set.is_assigned(*id));
        unassigned.map(|(id, _)| id).collect()
    }

    /// Replaces the counts of the values that need a dictionary of [`Self::unassigned`]. Does
    /// nothing if a group uses the dictionary again.
    pub fn recount(&self, id: NonZeroU32, values: u64, raw_bytes: u64, encoded_bytes: u64) {
        let state = self.lock();
        if let Some(found) = state.set.find(id.get())
            && !state.set.is_assigned(id)
        {
            found.recount(values, raw_bytes, encoded_bytes);
        }
    }

    /// Returns the descriptions of all dictionaries, by id.
    pub fn stats(&self) -> Vec<DictionaryStats> {
        let state = self.lock();
        let dictionaries = state.set.dictionaries.iter();
        let described = dictionaries.map(|dictionary| {
            let names = state.names.iter().filter(|(group, _)| {
                let found = state.set.of_group(**group);
                found.is_some_and(|found| found.id() == dictionary.id())
            });
            dictionary.stats(names.map(|(_, name)| name.clone()).collect())
        });
        described.collect()
    }

    /// Returns all dictionaries, by id.
    pub(crate) fn all(&self) -> Vec<Arc<Dictionary>> {
        self.lock().set.dictionaries.clone()
    }

    /// Returns the dictionary that a group was assigned.
    pub(crate) fn assigned(&self, group: GroupId) -> Option<Arc<Dictionary>> {
        let set = self.current();
        let found = set.groups.iter().find(|(found, _)| *found == group);
        match found {
            Some((_, dictionary)) => dictionary.clone(),
            None => set.rest.clone().filter(|_| group == GroupId::REST),
        }
    }

    /// Returns the dictionary of the rest, and at most `max` dictionaries that no group uses, those
    /// with the most values first, then the newest ones.
    pub(crate) fn candidates(&self, max: usize) -> Vec<Arc<Dictionary>> {
        let set = self.current();
        let unassigned = set.dictionaries.iter().filter(|found| !set.is_assigned(found.id()));
        let mut unassigned: Vec<_> = unassigned.cloned().collect();
        unassigned.sort_by_key(|found| std::cmp::Reverse((found.values(), found.id())));
        unassigned.truncate(max);
        unassigned.extend(set.rest.clone());
        unassigned
    }

    /// Returns a dictionary prepared for compression; `None` if there is no memory for that.
    pub(crate) fn prepared(&self, dictionary: Arc<Dictionary>) -> Option<Arc<Dictionary>> {
        if dictionary.compression().is_some() {
            return Some(dictionary);
        }
        Some(Arc::new(Dictionary::new(dictionary.as_bytes(), self.level).ok()?))
    }

    /// Returns an id that no dictionary has or had in this set.
    pub(crate) fn next_id(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.lock().max_id.checked_add(1)?)
    }

    /// Uses a dictionary, or none, for new values of a group. Adds the dictionary if it is not in
    /// the set yet.
    pub(crate) fn assign(
        &self,
        group: GroupId,
        name: &[u8],
        dictionary: Option<Arc<Dictionary>>,
    ) -> Result<()> {
        if let Some(dictionary) = &dictionary {
            self.save_new(dictionary)?;
        }
        self.publish(|set, names| {
            if let Some(dictionary) = &dictionary {
                self.insert(set, dictionary)?;
            }
            // The set may have had it before.
            let dictionary = dictionary.and_then(|found| set.find(found.id().get()).cloned());
            set.assign(group, dictionary);
            names.insert(group, name.to_vec());
            Ok(())
        })
    }

    /// Forgets groups that receive no values. A later value of them uses what the rest uses.
    pub(crate) fn forget(&self, groups: &[GroupId]) {
        let _ = self.publish(|set, names| {
            set.groups.retain(|(group, _)| !groups.contains(group));
            names.retain(|group, _| !groups.contains(group));
            Ok(())
        });
    }

    /// Returns a number that increases with each change of the set.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the current set.
    pub(crate) fn current(&self) -> Arc<Set> {
        Arc::clone(&self.lock().set)
    }

    fn insert(&self, set: &mut Set, dictionary: &Arc<Dictionary>) -> Result<()> {
        let id = dictionary.id();
        let at = set.dictionaries.binary_search_by_key(&id, |found| found.id());
        let mut memory = set.memory_bytes() + dictionary.memory_bytes();
        if let Ok(at) = at {
            let found = &set.dictionaries[at];
            if found.as_bytes() != dictionary.as_bytes() {
                return Err(Error::DuplicateId { id: id.get() });
            }
            if found.compression().is_some() || dictionary.compression().is_none() {
                return Ok(());
            }
            // It was only for reading so far.
            memory -= found.memory_bytes();
        }
        if memory > self.memory_limit {
            let (limit, needed) = (self.memory_limit as u64, memory as u64);
            return Err(Error::NoRoom { limit, needed });
        }
        match at {
            Ok(at) => set.dictionaries[at] = Arc::clone(dictionary),
            Err(at) => set.dictionaries.insert(at, Arc::clone(dictionary)),
        }
        Ok(())
    }

    /// Changes a copy of the set and publishes it, unless there is an error.
    fn publish<T>(
        &self,
        change: impl FnOnce(&mut Set, &mut BTreeMap<GroupId, Vec<u8>>) -> Result<T>,
    ) -> Result<T> {
        let mut state = self.lock();
        let mut set = Set::clone(&state.set);
        let result = change(&mut set, &mut state.names)?;
        self.replace(&mut state, set);
        Ok(result)
    }

    fn replace(&self, state: &mut State, mut set: Set) {
        set.generation = state.set.generation + 1;
        let max_id = set.dictionaries.last().map_or(0, |found| found.id().get());
        state.max_id = state.max_id.max(max_id);
        let generation = set.generation;
        let replaced = std::mem::replace(&mut state.set, Arc::new(set));
        let replaced = Arc::downgrade(&replaced);
        state.drop_unused_sets();
        state.replaced.push(replaced);
        self.generation.store(generation, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A set is replaced as a whole, so a panic of another thread leaves none half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
