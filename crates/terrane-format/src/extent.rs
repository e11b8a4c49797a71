//! The extent: data blocks, index block, filter, footer; and its description in the manifest.
