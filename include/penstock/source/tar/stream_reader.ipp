// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/stream_reader.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/to_size.hpp>

#include <utility>

namespace penstock::inline v0_1 {
namespace detail::tar {

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

PENSTOCK_INLINE bool stream_reader::next(stream_sample& e) {
  return next_of([&] { walk_.restart(); }, [&](const std::string& url) { return read_sample(e, url); },
                 [&] { close(); });
}

PENSTOCK_INLINE void stream_reader::rewind() noexcept {
  close();
  rewind_shards();
}

PENSTOCK_INLINE void stream_reader::seek(source_mark place) {
  rewind();
  stream_sample passed;
  seek_to(place, [&] { return next(passed); });
}

PENSTOCK_INLINE void stream_reader::close() noexcept {
  close_input();
  pending_ = ended_ = false;
}

PENSTOCK_INLINE bool stream_reader::find() {
  if (ended_) return false;
  while (walk_.next(found_)) {
    if (skipped_member(found_.path) || (set().skip_apple_double && is_apple_double(found_.path))) continue;
    const auto parts = split_member(found_.path);
    if (!parts) continue;
    parts_ = *parts;
    return true;
  }
  ended_ = true;
  input().drain();
  return false;
}

PENSTOCK_INLINE bool stream_reader::read_sample(stream_sample& e, const std::string& url) {
  while (pending_ || find()) {
    e.start(parts_.key, url);
    do {
      e.take(found_, parts_.suffix, set().limit, input(), walk_);
      pending_ = find();
    } while (pending_ && parts_.key == e.key());
    if (!e.bad()) return true;
  }
  close();
  return false;
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
