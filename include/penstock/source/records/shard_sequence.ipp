// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/shard_sequence.hpp>

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/to_size.hpp>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE stream_shards::stream_shards(std::vector<std::string> given, std::uint64_t maximum,
                                             std::uint64_t longest_extension, bool regular,
                                             std::string_view source, bool skips_apple_double)
    : names(std::move(given)),
      used(names.size()),
      limit(maximum),
      extension_limit(longest_extension),
      files(regular),
      source_name(source),
      skip_apple_double(skips_apple_double) {
  if (names.empty()) throw error(errc::argument, "a dataset needs at least one shard");
}

PENSTOCK_INLINE std::string stream_shards::describe() const {
  return std::string(source_name) + "(" +
         (names.size() == 1 ? names.front()
                            : std::to_string(names.size()) + " shards from " + names.front()) +
         ", read forward)";
}

PENSTOCK_INLINE std::uint64_t stream_shards::fingerprint() const {
  penstock::fingerprint mark;
  // pipes give what files do
  mark.add(source_name == "webdataset_pipe" ? "webdataset_stream" : source_name, names.size());
  for (const std::string& name : names) mark.add(std::string_view(name).substr(name.rfind('/') + 1));
  return mark.value();
}

PENSTOCK_INLINE void shard_sequence::enter(source_mark place) {
  const std::uint64_t shards = set_->names.size();
  if (place.shard > shards || (place.shard == shards && place.sample != 0))
    throw error(errc::state, {"there is no shard ", place.shard, "; the dataset has ", shards});
  shard_ = detail::to_size(place.shard);
}

PENSTOCK_INLINE void shard_sequence::too_few(source_mark place) const {
  throw error(errc::state, {"the shard has fewer than the ", place.sample,
                            " samples that the state counts; it was changed"})
      .in_file(set_->names[detail::to_size(place.shard)]);
}

PENSTOCK_INLINE void shard_sequence::open(const std::string& url) {
  if (stored_) {
    input_.open(shard_, set_->source_name);
  } else {
    if (set_->files && shard_stream::is_pipe(url))
      throw error(errc::argument,
                  "this is a pipe, and a run over a pipe cannot be resumed; write webdataset_pipe");
    input_.open(url, set_->used[shard_], set_->source_name);
  }
  open_ = true;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
