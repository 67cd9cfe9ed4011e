// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar_writer.hpp>

#include <penstock/source/records/member_name.hpp>
#include <penstock/source/tar/tar_format.hpp>

#include <cstddef>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE tar_archive::tar_archive(std::string name, tar_writer_options options)
    : name_(std::move(name)), options_(std::move(options)) {
  if (options_.index && name_.empty())
    throw error(errc::argument, "an index is written beside a file; give tar_writer a path");
}

PENSTOCK_INLINE void tar_archive::write(std::string_view key, std::span<const tar_member> members,
                                        const archive_sink& sink) {
  if (closed_ || failed_) throw error(errc::state, "this tar_writer is closed").in_file(name_).for_key(key);
  check(key, members);
  failed_ = true;  // until the sample is complete
  for (const tar_member& m : members) {
    path_.assign(key).append(".").append(m.suffix);
    header_.clear();
    append_tar_headers(header_, path_, m.bytes.size(), options_);
    const std::uint64_t begin = written_;
    put(header_.view(), sink);
    index_.add({path_, begin, written_, m.bytes.size(), false});
    put(m.bytes, sink);
    put(tar_padding_after(m.bytes.size()), sink);
  }
  failed_ = false;
}

PENSTOCK_INLINE void tar_archive::end(const archive_sink& sink) {
  if (closed_ || failed_) throw error(errc::state, "this tar_writer is closed").in_file(name_);
  closed_ = true;
  for (const bytes_view part : end_of_tar(written_)) put(part, sink);
}

PENSTOCK_INLINE void tar_archive::write_beside(const std::string& path, bytes_view index) const {
  if (!keep_index(path, index)) throw error(errc::io, {"cannot write the index ", path}).in_file(name_);
}

PENSTOCK_INLINE manifest::shard tar_archive::entry(const buffer& index) const {
  return {name_, written_, index_.samples(), index_.payload(), index_header::load(index.view())->content};
}

PENSTOCK_INLINE void tar_archive::put(bytes_view bytes, const archive_sink& sink) {
  sink.put(sink.who, bytes);
  written_ += bytes.size();
}

PENSTOCK_INLINE void tar_archive::check(std::string_view key, std::span<const tar_member> members) {
  const auto refuse = [&](const std::string& why) {
    throw error(errc::argument, why).in_file(name_).for_key(key);
  };
  if (members.empty()) refuse("a sample needs at least one member");
  if (index_.samples() != 0 && index_.last_key() == key)
    refuse("the previous sample has the same key: the two would be read as one");
  for (std::size_t i = 0; i < members.size(); ++i) {
    path_.assign(key).append(".").append(members[i].suffix);
    if (path_.find('\0') != std::string::npos) refuse("a key or suffix may not hold a NUL");
    const auto parts = split_member(path_);
    if (!parts || parts->key != key || path_.starts_with('/')) {
      refuse("'" + path_ +
             "' would not be read back as this key and suffix: the last part of a key may have no dot, " +
             "and a key may be neither empty nor absolute");
    }
    if (skipped_member(path_)) refuse("'" + path_ + "' would be skipped by readers");
    if (lower_case(members[i].suffix) != members[i].suffix) {
      refuse("the suffix '" + std::string(members[i].suffix) +
             "' has upper-case letters, which readers change to lower case");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (members[j].suffix == members[i].suffix)
        refuse("the suffix '" + std::string(members[i].suffix) + "' is given twice");
    }
  }
}

}  // namespace penstock::inline v0_1::detail
