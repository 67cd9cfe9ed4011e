// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

namespace penstock::inline v0_1 {

/// How a source obtains the indexes of its shards.
///
///   cache       the default: uses the file `<shard>.penstock-index` if it exists and belongs to the shard;
///               otherwise builds the index and keeps it in the user's cache folder, `$XDG_CACHE_HOME/penstock`
///               or `~/.cache/penstock`, under a hash of the shard's path. Without a cache folder that can be
///               written, the index stays in memory
///   keep        like `cache`, but a new index goes into `<shard>.penstock-index`, or stays in memory if the
///               folder is not writable, and the cache folder is not used
///   transient   uses `<shard>.penstock-index`, and writes no file
///   require     builds nothing: if `<shard>.penstock-index` is missing, damaged or made for another state of
///               its shard, that is an error that names both files
///   dali        makes the index from DALI's, `train-0.idx` for `train-0.tar`. Version v1.2 names all members,
///               so only a few headers are read: the first, the last and 62 between them. Version v1.1 does
///               not, so all headers are read and compared
///   energon     checks Megatron-Energon's index, `train-0.tar.idx`, against all headers
///
/// With `dali` and `energon` the other program's index must exist and agree with its shard: otherwise
/// errc::missing or errc::format with the names of both files. The resulting index stays in memory: no file
/// is written. `energon` reads Energon's `.nv-meta` except for its offsets: they are in an SQLite database,
/// and repeat the `.idx`.
///
/// Shards that are not local files, such as those of `http`: `keep` and `cache` both keep indexes in the
/// cache folder, or in `webdataset_options::index_folder`, under a hash of the shard's name without its
/// query, its size and its stamp (the ETag), so that an index never serves a shard that was replaced. An
/// index is looked for there; then beside the shard in the store: `<shard>.penstock-index`, or DALI's of
/// version v1.2; last it is built from the headers. One that was made from a copy of the shard elsewhere is
/// compared with six of the shard's headers, as is DALI's. `transient` does the same, and writes nothing.
/// `require` does the same, and builds nothing. A store that gives objects no stamp gets no files in the
/// folder. A file there that is damaged is made again; none is ever deleted, and you may delete any at any
/// time.
/// Source: DALI, wds2idx.py and webdataset_loader.cc; Megatron-Energon, itar.py.
enum class index_policy { cache, keep, transient, require, dali, energon };

/// What a source does with a shard that is cut off or damaged, which shows when its index is made.
///
///   refuse              making the plan is an error that names the shard and the offset
///   take_what_is_there  the samples before the damage are in the dataset, and those behind it are not: the sample
///                       in which it lies is left out. The source's `damaged_shards()` names such shards, its
///                       `describe()` counts them, and the ledger of `bad_samples` gets a line for each when a run
///                       opens. Their indexes stay in memory, so that each plan looks at them again. What is no
///                       shard at all is refused
enum class on_damaged_shard { refuse, take_what_is_there };

}  // namespace penstock::inline v0_1
