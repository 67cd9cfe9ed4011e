// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

namespace penstock::inline v0_1 {

/// What a source does about the indexes of its shards.
///
///   keep        uses the file `<shard>.penstock-index` where it is there and belongs to the shard; else
///               builds the index and keeps it in that file, or in memory where the folder may not be written
///   transient   the same, but writes no file
///   require     builds nothing: an index that is missing, damaged or made for another state of its shard is
///               an error that names both files
///   dali        makes the index from DALI's, `train-0.idx` for `train-0.tar`. One of version v1.2 names all
///               members: nothing but a few headers is read, the first, the last and 62 between them. One of
///               v1.1 does not: all headers are read and compared
///   energon     holds the index of Megatron-Energon, `train-0.tar.idx`, against all headers
///
/// What other programs wrote must be there and agree with its shard: else errc::missing or errc::format with
/// the names of both files. It stays in memory: no file is written. Energon's `.nv-meta` is read by
/// `energon`, but for its offsets: they are in an SQLite database, and repeat what the `.idx` says.
/// Source: DALI, wds2idx.py and webdataset_loader.cc; Megatron-Energon, itar.py.
enum class index_policy { keep, transient, require, dali, energon };

}  // namespace penstock::inline v0_1
