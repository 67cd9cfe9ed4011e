// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace penstock::inline v0_1 {

/// What a source does about the indexes of its shards.
///
/// `keep`       uses the file `<shard>.penstock-index` where it is there and belongs to the shard; otherwise
/// builds the index and
///              keeps it in that file, or in memory where the folder may not be written
/// `transient`  the same, but writes no file
/// `require`    builds nothing: an index that is missing, damaged or made for another state of its shard is
/// an error that names
///              both files
enum class index_policy { keep, transient, require };

}  // namespace penstock::inline v0_1
