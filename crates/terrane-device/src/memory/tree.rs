//! The directories of a device in memory: current entries, durable entries, and the changes between them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use terrane_base::{Error, Result};

use crate::memory::dir::{Change, Dir};
use crate::memory::file::{Held as HeldFile, MemFile};
use crate::memory::outcome::Choices;
use crate::memory::refused;
use crate::memory::space::Space;

/// Identifies a file or directory, independent of its path; never reused.
pub(super) type NodeId = u64;

const ROOT: NodeId = 0;

#[derive(Clone, Debug)]
enum Node {
    Dir(Dir),
    File(Arc<MemFile>),
}

/// The holder of a lock.
#[derive(Clone, Copy, Debug)]
enum Held {
    Writer,
    Readers(u32),
}

#[derive(Debug)]
pub(super) struct Tree {
    nodes: BTreeMap<NodeId, Node>,
    next: NodeId,
    locked: BTreeMap<NodeId, Held>,
}

impl Tree {
    pub(super) fn new() -> Self {
        Tree {
            nodes: BTreeMap::from([(ROOT, Node::Dir(Dir::default()))]),
            next: ROOT + 1,
            locked: BTreeMap::new(),
        }
    }

    pub(super) fn find(&self, path: &Path) -> Result<Option<NodeId>> {
        let mut node = ROOT;
        for name in names(path)? {
            match self.nodes.get(&node) {
                Some(Node::Dir(dir)) => match dir.entries.get(name) {
                    Some(&next) => node = next,
                    None => return Ok(None),
                },
                _ => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    pub(super) fn file(&self, node: NodeId) -> Option<Arc<MemFile>> {
        match self.nodes.get(&node) {
            Some(Node::File(file)) => Some(Arc::clone(file)),
            _ => None,
        }
    }

    /// Requires: no entry exists at `path`.
    pub(super) fn make_file(&mut self, path: &Path, space: &Arc<Space>) -> Result<Arc<MemFile>> {
        let file = Arc::new(MemFile::new(space));
        let (name, dir) = self.entry("make", path)?;
        self.add(dir, name, Node::File(Arc::clone(&file)));
        Ok(file)
    }

    /// Creates the missing directories of `path`, durably.
    pub(super) fn make_dirs(&mut self, path: &Path) -> Result<()> {
        let mut node = ROOT;
        for name in names(path)? {
            let found = self.dir(node).and_then(|dir| dir.entries.get(name).copied());
            let next = found.unwrap_or_else(|| self.add(node, name.to_owned(), Node::Dir(Dir::default())));
            if self.dir(next).is_none() {
                return Err(refused("make directory", path, io::ErrorKind::NotADirectory));
            }
            if found.is_none()
                && let Some(dir) = self.dir_mut(node)
            {
                dir.sync();
            }
            node = next;
        }
        Ok(())
    }

    pub(super) fn list(&self, path: &Path) -> Result<Vec<String>> {
        let dir = self.find(path)?.and_then(|node| self.dir(node));
        let dir = dir.ok_or_else(|| refused("list directory", path, io::ErrorKind::NotFound))?;
        Ok(dir.entries.keys().cloned().collect())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<()> {
        let what = format!("rename to {} from", to.display());
        let missing = || refused(&what, from, io::ErrorKind::NotFound);
        let node = self.find(from)?.ok_or_else(missing)?;
        let (from_name, from_dir) = self.entry(&what, from)?;
        let (to_name, to_dir) = self.entry(&what, to)?;
        if (from_dir, &from_name) == (to_dir, &to_name) {
            return Ok(());
        }
        if let Some(replaced) = self.find(to)? {
            self.unlink(replaced, to)?;
        }
        if from_dir == to_dir {
            self.change(from_dir, Change::Move(from_name, to_name));
        } else {
            self.change(to_dir, Change::Set(to_name, node));
            self.change(from_dir, Change::Unset(from_name));
        }
        Ok(())
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> Result<()> {
        let what = format!("link to {} from", to.display());
        let node = self.find(from)?.ok_or_else(|| refused(&what, from, io::ErrorKind::NotFound))?;
        let file = self.file(node).ok_or_else(|| refused(&what, from, io::ErrorKind::IsADirectory))?;
        if self.find(to)?.is_some() {
            return Err(Error::invalid(format!(
                "cannot {what} {}: the new name exists already",
                from.display()
            )));
        }
        let (name, dir) = self.entry(&what, to)?;
        file.add_name();
        self.change(dir, Change::Set(name, node));
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> Result<()> {
        let node = self.find(path)?.ok_or_else(|| refused("remove", path, io::ErrorKind::NotFound))?;
        let (name, dir) = self.entry("remove", path)?;
        self.unlink(node, path)?;
        self.change(dir, Change::Unset(name));
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> Result<()> {
        let node = self.find(path)?;
        let dir = node.and_then(|node| self.dir_mut(node));
        dir.ok_or_else(|| refused("sync directory", path, io::ErrorKind::NotFound))?.sync();
        self.sweep();
        Ok(())
    }

    /// Locks a node, exclusively or shared; returns false if another lock prevents it.
    pub(super) fn lock(&mut self, node: NodeId, is_shared: bool) -> bool {
        match (self.locked.get(&node).copied(), is_shared) {
            (None, true) => self.locked.insert(node, Held::Readers(1)).is_none(),
            (None, false) => self.locked.insert(node, Held::Writer).is_none(),
            (Some(Held::Readers(count)), true) => {
                self.locked.insert(node, Held::Readers(count + 1)).is_some()
            }
            (Some(_), _) => false,
        }
    }

    pub(super) fn unlock(&mut self, node: NodeId) {
        match self.locked.get_mut(&node) {
            Some(Held::Readers(count)) if *count > 1 => *count -= 1,
            _ => {
                self.locked.remove(&node);
            }
        }
    }

    /// Flips one bit of one file whose path `chosen` accepts; returns its location.
    pub(super) fn rot(&self, seed: u64, chosen: &dyn Fn(&str) -> bool) -> Option<(String, u64)> {
        let mut files = Vec::new();
        self.files_below(ROOT, "", &mut files);
        files.retain(|(path, _)| chosen(path));
        let choices = Choices::new(seed, 0);
        if files.is_empty() {
            return None;
        }
        let first = choices.below(files.len() as u64) as usize;
        files.rotate_left(first);
        files.into_iter().find_map(|(path, file)| Some((path, file.rot(&choices)?)))
    }

    fn files_below(&self, dir: NodeId, path: &str, files: &mut Vec<(String, Arc<MemFile>)>) {
        for (name, node) in self.dir(dir).into_iter().flat_map(|dir| &dir.entries) {
            let path = format!("{path}/{name}");
            match self.nodes.get(node) {
                Some(Node::File(file)) => files.push((path, Arc::clone(file))),
                Some(Node::Dir(_)) => self.files_below(*node, &path, files),
                None => {}
            }
        }
    }

    pub(super) fn write_back(&mut self, seed: u64) {
        for (&id, node) in &mut self.nodes {
            let choices = Choices::new(seed, id);
            match node {
                Node::File(file) => file.write_back(&choices),
                Node::Dir(dir) => {
                    let kept = choices.below(dir.changes.len() as u64 + 1) as usize;
                    let Dir { durable, changes, .. } = dir;
                    changes.drain(..kept).for_each(|change| change.apply(durable));
                }
            }
        }
    }

    pub(super) fn killed(&self, space: &Arc<Space>) -> Tree {
        let tree = self.copied(|_, file| file.killed(space), |_, dir| dir.clone());
        tree.count_names();
        tree
    }

    pub(super) fn crashed(&self, seed: u64, space: &Arc<Space>) -> Tree {
        self.crashed_by(space, |id| Choices::new(seed, id))
    }

    /// The outcome with this number, of those that [`Tree::outcomes`] counts.
    pub(super) fn crashed_as(&self, number: u64, space: &Arc<Space>) -> Tree {
        let choices = Arc::new(Choices::counted(number));
        self.crashed_by(space, |_| Arc::clone(&choices))
    }

    /// Number of outcomes of a power cut for the device, page by page; saturates.
    pub(super) fn outcomes(&self) -> u64 {
        let nodes = self.nodes.values().map(|node| match node {
            Node::File(file) => file.outcomes(),
            Node::Dir(dir) => dir.changes.len() as u64 + 1,
        });
        nodes.fold(1, u64::saturating_mul)
    }

    fn crashed_by<C: std::borrow::Borrow<Choices>>(
        &self,
        space: &Arc<Space>,
        choices_for: impl Fn(NodeId) -> C,
    ) -> Tree {
        let mut tree = self.copied(
            |id, file| file.crashed(space, choices_for(id).borrow()),
            |id, dir| {
                let entries = dir.crashed(choices_for(id).borrow());
                Dir { durable: entries.clone(), entries, changes: Vec::new() }
            },
        );
        tree.forget_lost();
        tree.count_names();
        tree.sweep();
        tree
    }

    /// A copy at one moment: otherwise files could change between the copies of two others, which no process
    /// and no power cut leaves.
    fn copied(
        &self,
        file_of: impl Fn(NodeId, &mut HeldFile<'_>) -> MemFile,
        dir_of: impl Fn(NodeId, &Dir) -> Dir,
    ) -> Tree {
        let held = self.nodes.iter().map(|(&id, node)| match node {
            Node::File(file) => (id, Ok(file.hold())),
            Node::Dir(dir) => (id, Err(dir)),
        });
        let held: Vec<(NodeId, std::result::Result<HeldFile<'_>, &Dir>)> = held.collect();
        let nodes = held.into_iter().map(|(id, held)| match held {
            Ok(mut file) => (id, Node::File(Arc::new(file_of(id, &mut file)))),
            Err(dir) => (id, Node::Dir(dir_of(id, dir))),
        });
        Tree { nodes: nodes.collect(), next: self.next, locked: BTreeMap::new() }
    }

    /// Empties the directories that no path reaches any more, as the next mount does: the removal of a
    /// directory was durable, and those of the names in it were not. Requires: no change is pending.
    fn forget_lost(&mut self) {
        let (mut reached, mut next) = (BTreeSet::from([ROOT]), vec![ROOT]);
        while let Some(id) = next.pop() {
            let entries = self.dir(id).into_iter().flat_map(|dir| dir.entries.values());
            next.extend(entries.copied().filter(|id| reached.insert(*id)));
        }
        for (id, node) in &mut self.nodes {
            if let Node::Dir(dir) = node
                && !reached.contains(id)
            {
                *dir = Dir::default();
            }
        }
    }

    /// Counts the current names of each file, and frees the space of files without a name.
    fn count_names(&self) {
        let mut names: BTreeMap<NodeId, u64> = BTreeMap::new();
        for node in self.dirs().flat_map(|dir| dir.entries.values()) {
            *names.entry(*node).or_default() += 1;
        }
        for (id, node) in &self.nodes {
            if let Node::File(file) = node {
                file.set_names(names.get(id).copied().unwrap_or(0));
            }
        }
    }

    /// Removes nodes that no entry names: no current one, no durable one and no pending change.
    fn sweep(&mut self) {
        let mut named = BTreeSet::from([ROOT]);
        for dir in self.dirs() {
            named.extend(dir.entries.values().chain(dir.durable.values()));
            named.extend(dir.changes.iter().filter_map(|change| match change {
                Change::Set(_, node) => Some(*node),
                Change::Unset(_) | Change::Move(..) => None,
            }));
        }
        self.nodes.retain(|id, _| named.contains(id));
    }

    /// Removes the name `path` of a file or of an empty directory.
    fn unlink(&mut self, node: NodeId, path: &Path) -> Result<()> {
        match self.nodes.get(&node) {
            Some(Node::Dir(dir)) if !dir.entries.is_empty() => {
                Err(refused("remove directory", path, io::ErrorKind::DirectoryNotEmpty))
            }
            Some(Node::File(file)) => {
                file.remove_name();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Splits `path` into its directory, which must exist, and its name in it.
    fn entry(&self, what: &str, path: &Path) -> Result<(String, NodeId)> {
        let mut names = names(path)?;
        let name = names.pop().ok_or_else(|| Error::invalid(format!("cannot {what} the root directory")))?;
        let dir: std::path::PathBuf = names.iter().collect();
        match self.find(&dir)? {
            Some(node) if self.dir(node).is_some() => Ok((name.to_owned(), node)),
            _ => Err(refused(what, path, io::ErrorKind::NotFound)),
        }
    }

    fn add(&mut self, dir: NodeId, name: String, node: Node) -> NodeId {
        let id = self.next;
        self.next += 1;
        self.nodes.insert(id, node);
        self.change(dir, Change::Set(name, id));
        id
    }

    fn change(&mut self, dir: NodeId, change: Change) {
        self.dir_mut(dir).expect("found as a directory under the same lock").change(change);
    }

    fn dir(&self, node: NodeId) -> Option<&Dir> {
        match self.nodes.get(&node) {
            Some(Node::Dir(dir)) => Some(dir),
            _ => None,
        }
    }

    fn dir_mut(&mut self, node: NodeId) -> Option<&mut Dir> {
        match self.nodes.get_mut(&node) {
            Some(Node::Dir(dir)) => Some(dir),
            _ => None,
        }
    }

    fn dirs(&self) -> impl Iterator<Item = &Dir> {
        self.nodes.values().filter_map(|node| match node {
            Node::Dir(dir) => Some(dir),
            Node::File(_) => None,
        })
    }
}

/// The names from the root to `path`; the root is also the working directory.
fn names(path: &Path) -> Result<Vec<&str>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(part) if part.to_str().is_some() => names.extend(part.to_str()),
            _ => {
                return Err(Error::invalid(format!(
                    "the memory device does not support a path like {}",
                    path.display()
                )));
            }
        }
    }
    Ok(names)
}
