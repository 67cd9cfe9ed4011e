// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/layouts/zip_archive.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void zip_entry::refuse(std::string_view why) const {
  throw error(errc::format, {"the member '", name.substr(0, 80), "' of the npz file ", why}).at_offset(at);
}

namespace zips {

inline constexpr std::uint64_t end_size = 22, longest_comment = 0xffff, entry_size = 46, local_size = 30;

inline constexpr std::uint64_t locator_size = 20, wide_end_size = 56, longest_directory = 64_MiB;

inline constexpr std::uint32_t end_mark = 0x06054b50, locator_mark = 0x07064b50, wide_mark = 0x06064b50;

inline constexpr std::uint32_t entry_mark = 0x02014b50, local_mark = 0x04034b50;

inline std::uint16_t half(bytes_view bytes, std::uint64_t at) noexcept {
  return load_little<std::uint16_t>(bytes.data() + to_size(at));
}

inline std::uint32_t word(bytes_view bytes, std::uint64_t at) noexcept {
  return load_little<std::uint32_t>(bytes.data() + to_size(at));
}

inline std::uint64_t wide(bytes_view bytes, std::uint64_t at) noexcept {
  return load_little<std::uint64_t>(bytes.data() + to_size(at));
}

[[noreturn]] inline void damaged(std::uint64_t at) {
  throw error(errc::format, "the zip archive's directory is damaged here; copy the file again").at_offset(at);
}

inline constexpr std::uint64_t no_end = static_cast<std::uint64_t>(-1);

// The position of the end record within the last bytes: the last record whose comment reaches the end.
inline std::uint64_t end_within(bytes_view tail) {
  for (std::size_t left = tail.size(); left >= end_size; --left) {
    const std::size_t at = left - end_size;
    if (word(tail, at) == end_mark && at + end_size + half(tail, at + 20) == tail.size()) return at;
  }
  return no_end;
}

// Numbers that do not fit 32 bits, and only those, are in an extra field, in this order.
inline void widen(zip_entry& e, bytes_view extra) {
  constexpr std::uint32_t too_large = 0xffffffff;
  while (extra.size() >= 4) {
    const std::size_t length = half(extra, 2);
    if (length > extra.size() - 4) damaged(e.at);
    if (half(extra, 0) == 1) {
      bytes_view numbers = extra.subspan(4, length);
      for (std::uint64_t* const number : {&e.unpacked, &e.packed, &e.begin}) {
        if (*number != too_large) continue;
        if (numbers.size() < 8) damaged(e.at);
        *number = wide(numbers, 0);
        numbers = numbers.subspan(8);
      }
    }
    extra = extra.subspan(4 + length);
  }
}

}  // namespace zips

PENSTOCK_INLINE zip_archive::zip_archive(bytes_of where, std::uint64_t size) : archive_(where) {
  const std::uint64_t tail = std::min(size, zips::end_size + zips::longest_comment);
  std::uint64_t end = 0;
  {
    buffer room;
    end = zips::end_within(range(size - tail, tail, room));
  }
  if (end == zips::no_end) {
    buffer room;
    const bytes_view head = range(0, std::min<std::uint64_t>(size, 512), room);
    throw not_a("a zip archive", text_of(head).starts_with("PK\3\4") ? bytes_view() : head,
                {"it has no end record, or was cut; an npz file is what numpy.savez writes"});
  }
  find_directory(size - tail + end);
  directory_ = range(begin_, size_, room_);
}

PENSTOCK_INLINE zip_archive::zip_archive(bytes_view whole)
    : zip_archive({whole.data(),
                   [](const void* from, std::uint64_t offset, std::uint64_t size, buffer&) {
                     return bytes_view(static_cast<const std::byte*>(from) + to_size(offset), to_size(size));
                   }},
                  whole.size()) {}

PENSTOCK_INLINE std::optional<zip_entry> zip_archive::find(std::string_view name) & {
  std::optional<zip_entry> found, other;
  const auto once = [](std::optional<zip_entry>& where, const zip_entry& e) {
    if (where) e.refuse("appears twice");
    where = e;
  };
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < entries_; ++i) {
    const zip_entry e = entry_at(directory_, at);
    if (e.name == name)
      once(found, e);
    else if (e.array() == name)
      once(other, e);
  }
  if (at != size_)
    throw error(errc::format, {"the zip archive's directory has ", size_ - at,
                               " more bytes than its entries take; copy the file again"})
        .at_offset(begin_ + at);
  if (!found) found = other;
  if (found) found = placed(*found);
  return found;
}

PENSTOCK_INLINE std::vector<zip_entry> zip_archive::all() & {
  std::vector<zip_entry> found;
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < entries_; ++i) found.push_back(entry_at(directory_, at));
  return found;
}

PENSTOCK_INLINE zip_entry zip_archive::first() & {
  std::uint64_t at = 0;
  return placed(entry_at(directory_, at));
}

PENSTOCK_INLINE void zip_archive::find_directory(std::uint64_t end) {
  std::uint64_t until = end;
  buffer room;
  const bytes_view record = range(end, zips::end_size, room);
  std::uint64_t disks = zips::word(record, 4);
  entries_ = zips::half(record, 10);
  size_ = zips::word(record, 12);
  begin_ = zips::word(record, 16);
  if (end >= zips::locator_size) {
    buffer wide_room;
    const bytes_view locator = range(end - zips::locator_size, zips::locator_size, wide_room);
    if (zips::word(locator, 0) == zips::locator_mark) {
      until = zips::wide(locator, 8);
      read_wide_end(until, end - zips::locator_size, disks);
    }
  }
  if (disks != 0)
    throw error(errc::format, "the zip archive is one of several parts; save it as one").at_offset(end);
  if (size_ > until || begin_ != until - size_ || entries_ > size_ / zips::entry_size)
    throw error(errc::format,
                {"the zip archive says that its ", entries_, " entries take ", size_, " bytes from ", begin_,
                 ", which is not just before its end record at ", until, "; copy the file again"})
        .at_offset(end);
  if (entries_ != 0 && begin_ < zips::local_size)
    throw error(errc::format, {"the zip archive's directory begins at ", begin_,
                               ", which leaves no room for a member before it"})
        .at_offset(end);
  if (size_ > zips::longest_directory)
    throw error(errc::limit,
                {"the zip archive's directory has ", size_, " bytes, and at most 64 MiB are read"})
        .at_offset(end);
}

PENSTOCK_INLINE void zip_archive::read_wide_end(std::uint64_t at, std::uint64_t locator,
                                                std::uint64_t& disks) {
  const auto fail = [&] {
    throw error(errc::format,
                "the zip archive's 64-bit end record is not where its locator says; copy the file again")
        .at_offset(locator);
  };
  if (locator < zips::wide_end_size || at > locator - zips::wide_end_size) fail();
  buffer room;
  const bytes_view record = range(at, zips::wide_end_size, room);
  if (zips::word(record, 0) != zips::wide_mark || zips::wide(record, 4) != locator - at - 12) fail();
  disks = zips::wide(record, 16);
  entries_ = zips::wide(record, 32);
  size_ = zips::wide(record, 40);
  begin_ = zips::wide(record, 48);
}

PENSTOCK_INLINE zip_entry zip_archive::entry_at(bytes_view all, std::uint64_t& at) const {
  zip_entry e;
  e.at = begin_ + at;
  if (size_ - at < zips::entry_size || zips::word(all, at) != zips::entry_mark) zips::damaged(e.at);
  const std::uint64_t name = zips::half(all, at + 28), extra = zips::half(all, at + 30),
                      comment = zips::half(all, at + 32);
  if (size_ - at - zips::entry_size < name + extra + comment) zips::damaged(e.at);
  e.flags = zips::half(all, at + 8);
  e.method = zips::half(all, at + 10);
  e.checksum = zips::word(all, at + 16);
  e.packed = zips::word(all, at + 20);
  e.unpacked = zips::word(all, at + 24);
  e.begin = zips::word(all, at + 42);
  e.name = text_of(all.subspan(to_size(at + zips::entry_size), to_size(name)));
  zips::widen(e, all.subspan(to_size(at + zips::entry_size + name), to_size(extra)));
  at += zips::entry_size + name + extra + comment;
  return e;
}

PENSTOCK_INLINE zip_entry zip_archive::placed(zip_entry e) const {
  if ((e.flags & 1) != 0) e.refuse("is encrypted; save it without a password");
  if ((e.method == 0 && e.packed != e.unpacked) || e.begin > begin_ || begin_ - e.begin < zips::local_size)
    zips::damaged(e.at);
  const std::uint64_t at = e.begin;
  buffer room, name_room;
  const bytes_view head = range(at, zips::local_size, room);
  const std::uint64_t name_size = zips::half(head, 26), extra_size = zips::half(head, 28);
  const bool is_head = zips::word(head, 0) == zips::local_mark && name_size == e.name.size();
  e.begin += zips::local_size + name_size + extra_size;
  if (!is_head || e.begin > begin_ || begin_ - e.begin < e.packed ||
      text_of(range(at + zips::local_size, name_size, name_room)) != e.name)
    throw error(errc::format, {"the zip archive's directory entry for '", e.name.substr(0, 80),
                               "' does not match byte ", at, "; copy the file again"})
        .at_offset(e.at);
  return e;
}

}  // namespace penstock::inline v0_1::detail
