//! What documents say to a question: folders and attached files, in pieces, found by words and by vectors.
//!
//! Pure are how a document is split ([`split`]), what must be read anew (`changes`), which of what was found is shown
//! ([`rank`]) and how (`shown`). [`Knowledge`] carries it out over the index that the engine's port names.

mod changes;
mod document;
mod folder;
pub mod rank;
mod shown;
pub mod split;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};
use turnwright_core::{Context, ConversationId, counted};
use turnwright_engine::knowledge::{
    Beside, CollectionSize, Embedder, FoundPiece, IndexedFile, KnowledgeIndex, NotEmbedded, Piece, collection_beside,
    says_something, version_of,
};
use turnwright_engine::{Clock, Gathered, KnownSecrets, StoreError};

pub use self::folder::Refreshed;
use self::folder::{Folder, Hand};
use self::rank::{fuse, within};
pub(crate) use self::shown::{attribute, harmless};
use self::split::Sizes;
use crate::{OwnPaths, RootsError};

/// How long a look-up reads what changed, before it goes on with what is there.
const REFRESH_TIME: Duration = Duration::from_secs(4);
/// How long a look-up gives new pieces their vectors.
const EMBED_TIME: Duration = Duration::from_secs(4);
/// How long the vector of a question is waited for.
const QUESTION_TIME: Duration = Duration::from_secs(6);
/// How many texts are embedded at once.
const EMBEDDED_AT_ONCE: usize = 16;
/// The least of a piece that an embedding model is asked about, in bytes: one that refuses that refuses everything.
const LEAST_EMBEDDED: usize = 200;
/// How long such texts may take where nobody waits for an answer: a model may be slow, or be loaded first.
const EMBEDDED_IN: Duration = Duration::from_mins(3);
/// How many pieces each way of finding names.
const MOST_FOUND: usize = 64;
/// The longest question that is looked up, in characters.
const MOST_QUESTION: usize = 4_000;
/// What a conversation's own documents are called.
const ATTACHED: &str = "attached";

/// A folder of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeFolder {
    /// What it is called.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Globs over paths below it; all files where there are none.
    pub include: Vec<String>,
    /// Globs over paths below it.
    pub exclude: Vec<String>,
    /// What is not touched, beside what looks like a secret, in the form of `.gitignore`.
    pub denied: Vec<String>,
    /// Files and folders that are not touched wherever they are met: those of the program itself.
    pub ours: OwnPaths,
    /// The largest file that is read, in bytes.
    pub max_file_bytes: u64,
}

/// How documents are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeConfig {
    /// The folders, by names that differ.
    pub folders: Vec<KnowledgeFolder>,
    /// How large pieces are.
    pub sizes: Sizes,
    /// How many tokens of pieces a message is shown with, at most.
    pub budget_tokens: u32,
    /// How many pieces, at most.
    pub max_pieces: usize,
    /// How much like a question a piece is at least by its vector, in hundredths of the cosine.
    pub least_likeness_percent: u8,
    /// What no embedding model and nobody who looks something up is shown of them.
    pub secrets: KnownSecrets,
}

/// Documents that are looked up. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Knowledge(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    hand: Hand,
    folders: Vec<Folder>,
    embedder: Option<Arc<dyn Embedder>>,
    sizes: Sizes,
    budget_tokens: u32,
    max_pieces: usize,
    least_likeness_percent: u8,
    secrets: KnownSecrets,
}

/// What a piece's collection is called.
#[derive(Debug, Clone, Copy)]
struct Named<'a> {
    name: &'a str,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The pieces, the best first, each with the name of what it is from.
    pub found: Vec<(String, FoundPiece)>,
    /// What people should know of how it was looked up.
    pub notices: Vec<String>,
}

/// What a look-up knows before it finds anything.
struct Looked {
    /// The collections, each with its name for people.
    collections: Vec<(String, String)>,
    notices: Vec<String>,
    /// Why vectors are not asked for, where they failed.
    without_vectors: Option<String>,
    /// Until when documents are read.
    read_until: Instant,
}

impl Looked {
    fn new() -> Self {
        let read_until = Instant::now() + REFRESH_TIME;
        Self { collections: Vec::new(), notices: Vec::new(), without_vectors: None, read_until }
    }
}

impl Knowledge {
    /// Opens the folders. `holder` names this process among those that share the index.
    ///
    /// # Errors
    /// [`RootsError`] where a folder cannot be opened or a pattern says nothing.
    pub fn open(
        config: KnowledgeConfig,
        index: Arc<dyn KnowledgeIndex>,
        embedder: Option<Arc<dyn Embedder>>,
        clock: Arc<dyn Clock>,
        holder: String,
    ) -> Result<Self, RootsError> {
        let KnowledgeConfig { folders, sizes, budget_tokens, max_pieces, least_likeness_percent, secrets } = config;
        let folders = folders.into_iter().map(|folder| Folder::open(folder, sizes)).collect::<Result<_, _>>()?;
        let hand = Hand { index, clock, holder };
        let parts = Parts { hand, folders, embedder, sizes, budget_tokens, max_pieces, least_likeness_percent, secrets };
        Ok(Self(Arc::new(parts)))
    }

    /// The names of the folders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.folders.iter().map(|folder| folder.name.as_str())
    }

    /// How much the index holds of a folder; `None` where there is no such folder.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn size(&self, name: &str) -> Result<Option<CollectionSize>, StoreError> {
        let Some(folder) = self.folder(name) else { return Ok(None) };
        let found = self.0.hand.index.sizes().await?.into_iter().find(|size| size.collection == folder.collection);
        let empty = || CollectionSize { collection: folder.collection.clone(), files: 0, skipped: 0, pieces: 0, vectors: 0 };
        Ok(Some(found.unwrap_or_else(empty)))
    }

    /// The documents that the index knows of a folder, also those that were passed over; `None` where there is no such folder.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn files(&self, name: &str) -> Result<Option<Vec<IndexedFile>>, StoreError> {
        match self.folder(name) {
            Some(folder) => self.0.hand.index.files(&folder.collection).await.map(Some),
            None => Ok(None),
        }
    }

    fn folder(&self, name: &str) -> Option<&Folder> {
        self.0.folders.iter().find(|folder| folder.name == name)
    }

    /// Brings the index of a folder to what it holds, for at most `time`, with vectors where a model makes them; `None` where
    /// there is no such folder. The notices say what did not work.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn refresh(&self, name: &str, time: Duration) -> Result<Option<(Refreshed, Vec<String>)>, StoreError> {
        let Some(folder) = self.folder(name) else { return Ok(None) };
        self.forget_older(folder).await?;
        let deadline = Instant::now() + time;
        let refreshed = folder.refresh(&self.0.hand, deadline).await?;
        let mut refreshed = refreshed;
        let why = self.embed(&folder.collection, deadline, EMBEDDED_IN).await?;
        if let (Some(embedder), None) = (&self.0.embedder, &why) {
            let lacking = self.0.hand.index.without_vector(&folder.collection, embedder.name(), 1).await?;
            refreshed.lacks_vectors = !lacking.is_empty();
        }
        let notices = why.map(|why| format!("documents have no vectors yet: {why}")).into_iter().collect();
        Ok(Some((refreshed, notices)))
    }

    /// Removes what was indexed of a folder of this name when it was read in another way.
    async fn forget_older(&self, folder: &Folder) -> Result<(), StoreError> {
        let begin = format!("folder/{}/", folder.name);
        for size in self.0.hand.index.sizes().await? {
            let is_older = size.collection.starts_with(&begin) && size.collection != folder.collection;
            if is_older && self.0.hand.claim(&size.collection).await? {
                self.0.hand.index.remove_collection(&size.collection).await?;
            }
        }
        Ok(())
    }

    /// Gives pieces without a vector theirs, some at a time, until `deadline`; why it ended before, where it did. Those that are
    /// on their way then may take `patience` more.
    async fn embed(&self, collection: &str, deadline: Instant, patience: Duration) -> Result<Option<String>, StoreError> {
        let Some(embedder) = &self.0.embedder else { return Ok(None) };
        if self.0.hand.index.without_vector(collection, embedder.name(), 1).await?.is_empty() {
            return Ok(None);
        }
        let ended = self.embed_lacking(embedder, collection, deadline, patience).await;
        self.0.hand.release(collection).await?;
        ended
    }

    async fn embed_lacking(
        &self,
        embedder: &Arc<dyn Embedder>,
        collection: &str,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Option<String>, StoreError> {
        let index = &self.0.hand.index;
        loop {
            let lacking = index.without_vector(collection, embedder.name(), EMBEDDED_AT_ONCE).await?;
            if lacking.is_empty() || Instant::now() >= deadline || !self.0.hand.claim(collection).await? {
                return Ok(None);
            }
            let secrets = self.0.secrets.now();
            let texts: Vec<String> = lacking.iter().map(|found| secrets.hide(&worded(&found.piece)).into_owned()).collect();
            let vectors = match timeout_at(deadline + patience, vectors(&**embedder, &texts)).await {
                Ok(Ok(vectors)) if vectors.len() == lacking.len() => vectors,
                Ok(Ok(vectors)) => {
                    return Ok(Some(format!("the embedding model gave {} vectors for {} texts", vectors.len(), lacking.len())));
                }
                Ok(Err(failure)) => return Ok(Some(failure.why)),
                Err(_) => return Ok(Some(format!("the embedding model `{}` took too long", embedder.name()))),
            };
            let vectors = lacking.iter().map(|found| found.id).zip(vectors).collect();
            index.put_vectors(collection, embedder.name(), vectors).await?;
        }
    }

    /// Puts a document beside a conversation, in the place of one of its name: it, or why it has no text. `None` where that
    /// conversation is not there any more.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn attach(
        &self,
        beside: &Beside,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<Option<Result<IndexedFile, String>>, StoreError> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let (path, hash, sizes) = (PathBuf::from(name), version_of(&bytes), self.0.sizes);
        let pieces = tokio::task::spawn_blocking(move || document::pieces(&path, bytes, sizes)).await;
        let pieces = match pieces.unwrap_or_else(|_| Err("its reader broke off".to_owned())) {
            Ok(pieces) => pieces,
            Err(why) => return Ok(Some(Err(why))),
        };
        let file = IndexedFile { path: name.to_owned(), bytes: size, modified_ns: 0, hash, skipped: None };
        let is_put = self.0.hand.index.put_beside(beside, file.clone(), pieces).await?;
        Ok(is_put.then_some(Ok(file)))
    }

    /// The documents beside a conversation.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn attached(&self, conversation: &ConversationId) -> Result<Vec<IndexedFile>, StoreError> {
        self.0.hand.index.files(&collection_beside(conversation)).await
    }

    /// Takes a document away from a conversation; whether it was there.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn detach(&self, conversation: &ConversationId, name: &str) -> Result<bool, StoreError> {
        let is_there = self.attached(conversation).await?.iter().any(|file| file.path == name);
        self.0.hand.index.remove(&collection_beside(conversation), vec![name.to_owned()]).await?;
        Ok(is_there)
    }

    /// What a folder says to a question; `None` where there is no such folder.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn search(&self, name: &str, question: &str) -> Result<Option<Answer>, StoreError> {
        let Some(folder) = self.folder(name) else { return Ok(None) };
        let mut looked = Looked::new();
        self.look(folder, &mut looked).await?;
        self.find(question, looked).await.map(Some)
    }

    /// What all folders, and what is beside the conversation, say to a message; with what did not work. Never fails: without
    /// an index nothing is found. What is shown already is not shown again.
    pub async fn gather(&self, conversation: &ConversationId, said: &str, shown: &[Context]) -> Gathered {
        match self.answer(conversation, said).await {
            Ok(Answer { found, notices }) => {
                let named = found.iter().map(|(name, found)| (Named { name }, found.clone()));
                let (again, new): (Vec<_>, Vec<_>) = named.partition(|(named, found)| shown::is_shown(*named, found, shown));
                Gathered { notices, ..shown::found(&new, &again) }
            }
            Err(error) => {
                tracing::warn!(%conversation, %error, "documents could not be looked up");
                let notice = format!("documents could not be looked up: {error}");
                Gathered { notices: vec![notice], ..Gathered::default() }
            }
        }
    }

    async fn answer(&self, conversation: &ConversationId, said: &str) -> Result<Answer, StoreError> {
        if !says_something(said) {
            return Ok(Answer::default());
        }
        let mut looked = Looked::new();
        for folder in &self.0.folders {
            self.look(folder, &mut looked).await?;
        }
        let own = collection_beside(conversation);
        if self.0.hand.index.has_files(&own).await? {
            self.embed_for(&own, &mut looked).await?;
            looked.collections.push((own, ATTACHED.to_owned()));
        }
        if looked.collections.is_empty() {
            return Ok(Answer::default());
        }
        self.find(said, looked).await
    }

    /// Brings a folder's index to what it holds, as far as there is time for it.
    async fn look(&self, folder: &Folder, looked: &mut Looked) -> Result<(), StoreError> {
        let refreshed = folder.refresh(&self.0.hand, looked.read_until).await?;
        if refreshed.left > 0 {
            let (name, left) = (&folder.name, refreshed.left);
            let are = if left == 1 { "is" } else { "are" };
            looked.notices.push(format!(
                "`{name}` is not wholly indexed yet: {} {are} left; `turnwright knowledge index` does it",
                counted(left, "document")
            ));
        }
        if refreshed.is_elsewhere {
            let name = &folder.name;
            looked.notices.push(format!("`{name}` is being indexed: what is not in its index yet was not looked up"));
        }
        self.embed_for(&folder.collection, looked).await?;
        looked.collections.push((folder.collection.clone(), folder.name.clone()));
        Ok(())
    }

    /// The same for vectors; a model that failed once is not asked again for this question.
    async fn embed_for(&self, collection: &str, looked: &mut Looked) -> Result<(), StoreError> {
        if looked.without_vectors.is_none() {
            looked.without_vectors = self.embed(collection, looked.read_until, EMBED_TIME).await?;
        }
        Ok(())
    }

    async fn find(&self, question: &str, looked: Looked) -> Result<Answer, StoreError> {
        let Looked { collections, mut notices, mut without_vectors, .. } = looked;
        let secrets = self.0.secrets.now();
        let question: String = secrets.hide(question).chars().take(MOST_QUESTION).collect();
        let keys: Vec<String> = collections.iter().map(|(key, _)| key.clone()).collect();
        let index = &self.0.hand.index;
        if !says_something(&question) {
            return Ok(Answer { found: Vec::new(), notices });
        }
        let mut lists = vec![rank::by_words(&index.by_words(&keys, &question, MOST_FOUND).await?)];
        if let (Some(embedder), None) = (&self.0.embedder, &without_vectors) {
            match timeout(QUESTION_TIME, embedder.embed(std::slice::from_ref(&question))).await {
                Ok(Ok(vectors)) => {
                    if let [vector] = vectors.as_slice() {
                        let hits = index.by_vector(&keys, embedder.name(), vector, MOST_FOUND).await?;
                        lists.push(rank::by_vector(&hits, f64::from(self.0.least_likeness_percent) / 100.0));
                    }
                }
                Ok(Err(failure)) => without_vectors = Some(failure.why),
                Err(_) => without_vectors = Some(format!("the embedding model `{}` took too long", embedder.name())),
            }
        }
        notices.extend(without_vectors.map(|why| format!("documents were looked up by words alone: {why}")));
        let fused: Vec<_> = fuse(&lists).into_iter().take(MOST_FOUND).collect();
        // What is cut is cut after secrets are hidden: no half of one is left.
        let mut pieces = index.pieces(&fused).await?;
        for found in &mut pieces {
            for text in [&mut found.piece.heading, &mut found.piece.text] {
                *text = secrets.hide(text).into_owned();
            }
        }
        let taken = within(pieces, self.0.budget_tokens, self.0.max_pieces);
        let name =
            |piece: &FoundPiece| collections.iter().find(|(key, _)| *key == piece.collection).map(|(_, name)| name.clone());
        let found = taken.into_iter().filter_map(|found| Some((name(&found)?, found))).collect();
        Ok(Answer { found, notices })
    }
}

/// What of a piece is embedded.
fn worded(piece: &Piece) -> String {
    if piece.heading.is_empty() { piece.text.clone() } else { format!("{}\n{}", piece.heading, piece.text) }
}

/// The vectors of these texts. Where the model refuses them together, each for itself; of one that it refuses alone, which is longer than it
/// takes as a rule, the half, and so on: its beginning says what it is about.
async fn vectors(embedder: &dyn Embedder, texts: &[String]) -> Result<Vec<Vec<f32>>, NotEmbedded> {
    match embedder.embed(texts).await {
        Err(refused) if refused.is_of_the_texts => {}
        done => return done,
    }
    let mut vectors = Vec::with_capacity(texts.len());
    for text in texts {
        let mut shown = text.as_str();
        loop {
            match embedder.embed(&[shown.to_owned()]).await {
                Ok(one) => break vectors.extend(one),
                Err(why) if shown.len() <= LEAST_EMBEDDED || !why.is_of_the_texts => return Err(why),
                Err(_) => shown = shown.get(..shown.floor_char_boundary(shown.len() / 2)).unwrap_or_default(),
            }
        }
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::{LEAST_EMBEDDED, vectors};
    use turnwright_engine::knowledge::{Embedder, NotEmbedded};

    /// Takes texts of so many bytes at most, and says of each how long it was.
    #[derive(Debug)]
    struct Narrow {
        most: usize,
        asked: Mutex<usize>,
    }

    #[async_trait]
    impl Embedder for Narrow {
        fn name(&self) -> &'static str {
            "here/e"
        }

        async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, NotEmbedded> {
            *self.asked.lock().unwrap() += 1;
            if texts.iter().any(|text| text.len() > self.most) {
                return Err(NotEmbedded { why: "too long".to_owned(), is_of_the_texts: self.most > 0 });
            }
            Ok(texts.iter().map(|text| vec![f32::from(u16::try_from(text.len()).unwrap())]).collect())
        }
    }

    fn narrow(most: usize) -> Narrow {
        Narrow { most, asked: Mutex::default() }
    }

    #[tokio::test]
    async fn a_piece_that_is_longer_than_the_model_takes_is_known_by_its_beginning_and_keeps_no_other_from_its_vector() {
        let (short, long) = ("a".repeat(300), "ж".repeat(700));
        let found = vectors(&narrow(512), &[short.clone(), long, short]).await;
        assert_eq!(found, Ok(vec![vec![300.0], vec![350.0], vec![300.0]]));
        // All that fit are asked about at once.
        let model = narrow(512);
        assert_eq!(vectors(&model, &["b".to_owned(), "cc".to_owned()]).await, Ok(vec![vec![1.0], vec![2.0]]));
        assert_eq!(*model.asked.lock().unwrap(), 1);
    }

    #[tokio::test]
    async fn a_model_that_refuses_everything_is_not_asked_about_every_piece() {
        let texts = vec!["a".repeat(LEAST_EMBEDDED); 16];
        // It takes nothing, whatever that is; or nothing of this length.
        for (most, times) in [(0, 1), (1, 2)] {
            let model = narrow(most);
            assert_eq!(vectors(&model, &texts).await.unwrap_err().why, "too long");
            assert_eq!(*model.asked.lock().unwrap(), times);
        }
    }
}
