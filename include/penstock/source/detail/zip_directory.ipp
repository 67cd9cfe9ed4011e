// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/detail/zip_directory.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/detail/little_endian.hpp>
#include <penstock/source/detail/name_list.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

namespace penstock::inline v0_1 {
namespace detail {

// The directory at the end of a zip archive.
class zip_directory {
 public:
  zip_directory(session_view session, object_id object, std::uint64_t size)
      : session_(session), object_(object) {
    const std::uint64_t tail = std::min(size, end_size + longest_comment);
    const std::uint64_t end = size - tail + end_within(session_.range(object_, size - tail, tail, room_));
    find_directory(end);
  }

  // The member called `name`, or else `name` plus ".npy", as numpy looks for arrays. Throws
  // `errc::missing`, with the names of the members, if there is neither.
  [[nodiscard]] zip_member array(std::string_view name) {
    const std::string with_suffix = std::string(name) + ".npy";
    const bytes_view all = session_.range(object_, begin_, size_, room_);
    entry found, other;
    std::string known;
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < entries_; ++i) {
      const entry e = entry_at(all, at);
      if (e.name == name) once(found, e);
      if (e.name == with_suffix) once(other, e);
      list_name(known, name_of(e));
    }
    if (at != size_)
      throw error(errc::format, {"the zip archive's directory has ", size_ - at,
                                 " more bytes than its entries take; copy the file again"})
          .at_offset(begin_ + at);
    if (found.at == 0) found = other;
    if (found.at == 0)
      throw error(errc::missing, {"the npz file has no array '", name, "'",
                                  known.empty() ? "; it has none" : "; it has: ", known})
          .at_offset(begin_);
    return place_of(found);
  }

 private:
  static constexpr std::uint64_t end_size = 22, longest_comment = 0xffff, entry_size = 46, local_size = 30;
  static constexpr std::uint64_t locator_size = 20, wide_end_size = 56, longest_directory = 64_MiB;
  static constexpr std::uint32_t end_mark = 0x06054b50, locator_mark = 0x07064b50, wide_mark = 0x06064b50;
  static constexpr std::uint32_t entry_mark = 0x02014b50, local_mark = 0x04034b50;

  struct entry {
    std::string_view name;
    std::uint64_t at = 0;  // of the entry, in the file; 0: none
    std::uint64_t begin = 0, packed = 0, unpacked = 0;
    std::uint16_t method = 0, flags = 0;
  };

  // The position of the end record within the last bytes: the last record whose comment reaches the
  // end.
  static std::uint64_t end_within(bytes_view tail) {
    for (std::size_t left = tail.size(); left >= end_size; --left) {
      const std::size_t at = left - end_size;
      if (little_endian<std::uint32_t>(tail, at) == end_mark &&
          at + end_size + little_endian<std::uint16_t>(tail, at + 20) == tail.size())
        return at;
    }
    throw error(errc::format,
                "this is not a zip archive, or it was cut: it has no end record; an npz "
                "file is what numpy.savez writes")
        .at_offset(0);
  }

  void find_directory(std::uint64_t end) {
    std::uint64_t until = end;
    buffer room;
    const bytes_view record = session_.range(object_, end, end_size, room);
    std::uint64_t disks = little_endian<std::uint32_t>(record, 4);
    entries_ = little_endian<std::uint16_t>(record, 10);
    size_ = little_endian<std::uint32_t>(record, 12);
    begin_ = little_endian<std::uint32_t>(record, 16);
    if (end >= locator_size) {
      buffer wide_room;
      const bytes_view locator = session_.range(object_, end - locator_size, locator_size, wide_room);
      if (little_endian<std::uint32_t>(locator, 0) == locator_mark) {
        until = little_endian<std::uint64_t>(locator, 8);
        read_wide_end(until, end - locator_size, disks);
      }
    }
    if (disks != 0)
      throw error(errc::format, "the zip archive is one of several parts; save it as one").at_offset(end);
    if (size_ > until || begin_ != until - size_ || entries_ > size_ / entry_size)
      throw error(errc::format,
                  {"the zip archive says that its ", entries_, " entries take ", size_, " bytes from ",
                   begin_, ", which is not just before its end record at ", until, "; copy the file again"})
          .at_offset(end);
    if (entries_ != 0 && begin_ < local_size)
      throw error(errc::format, {"the zip archive's directory begins at ", begin_,
                                 ", which leaves no room for a member before it"})
          .at_offset(end);
    if (size_ > longest_directory)
      throw error(errc::limit,
                  {"the zip archive's directory has ", size_, " bytes, and at most 64 MiB are read"})
          .at_offset(end);
  }

  // The end record of archives with more than 4 GiB or 65,535 members.
  void read_wide_end(std::uint64_t at, std::uint64_t locator, std::uint64_t& disks) {
    if (locator < wide_end_size || at > locator - wide_end_size) fail_wide(locator);
    buffer room;
    const bytes_view record = session_.range(object_, at, wide_end_size, room);
    if (little_endian<std::uint32_t>(record, 0) != wide_mark ||
        little_endian<std::uint64_t>(record, 4) != locator - at - 12)
      fail_wide(locator);
    disks = little_endian<std::uint64_t>(record, 16);
    entries_ = little_endian<std::uint64_t>(record, 32);
    size_ = little_endian<std::uint64_t>(record, 40);
    begin_ = little_endian<std::uint64_t>(record, 48);
  }
  [[noreturn]] static void fail_wide(std::uint64_t locator) {
    throw error(errc::format,
                "the zip archive's 64-bit end record is not where its locator says; copy the file again")
        .at_offset(locator);
  }

  // Reads the entry at `at`, and advances `at` to the next entry.
  entry entry_at(bytes_view all, std::uint64_t& at) const {
    entry e;
    e.at = begin_ + at;
    if (size_ - at < entry_size || little_endian<std::uint32_t>(all, place(at)) != entry_mark) fail(e);
    const auto half = [&](std::uint64_t i) { return little_endian<std::uint16_t>(all, place(at + i)); };
    const auto word = [&](std::uint64_t i) { return little_endian<std::uint32_t>(all, place(at + i)); };
    const std::uint64_t name = half(28), extra = half(30), comment = half(32);
    if (size_ - at - entry_size < name + extra + comment) fail(e);
    e.flags = half(8);
    e.method = half(10);
    e.packed = word(20);
    e.unpacked = word(24);
    e.begin = word(42);
    e.name = text_of(all.subspan(place(at + entry_size), place(name)));
    widen(e, all.subspan(place(at + entry_size + name), place(extra)));
    at += entry_size + name + extra + comment;
    return e;
  }
  // Numbers that do not fit 32 bits, and only those, are in an extra field, in this order.
  static void widen(entry& e, bytes_view extra) {
    constexpr std::uint32_t too_large = 0xffffffff;
    while (extra.size() >= 4) {
      const auto id = little_endian<std::uint16_t>(extra, 0);
      const std::size_t length = little_endian<std::uint16_t>(extra, 2);
      if (length > extra.size() - 4) fail(e);
      if (id == 1) {
        bytes_view numbers = extra.subspan(4, length);
        for (std::uint64_t* const number : {&e.unpacked, &e.packed, &e.begin}) {
          if (*number != too_large) continue;
          if (numbers.size() < 8) fail(e);
          *number = little_endian<std::uint64_t>(numbers, 0);
          numbers = numbers.subspan(8);
        }
      }
      extra = extra.subspan(4 + length);
    }
  }

  zip_member place_of(const entry& e) {
    if ((e.flags & 1) != 0) refuse(e, "is encrypted; save it without a password");
    if (e.method != 0)
      refuse(e,
             "is compressed, so its rows cannot be reached one by one; save it with numpy.savez instead of "
             "numpy.savez_compressed");
    if (e.packed != e.unpacked || e.begin > begin_ || begin_ - e.begin < local_size) fail(e);
    const std::string name(e.name);
    buffer room;
    const bytes_view head = session_.range(object_, e.begin, local_size, room);
    const std::uint64_t name_size = little_endian<std::uint16_t>(head, 26),
                        extra_size = little_endian<std::uint16_t>(head, 28);
    const bool is_head = little_endian<std::uint32_t>(head, 0) == local_mark && name_size == name.size();
    const std::uint64_t begin = e.begin + local_size + name_size + extra_size;
    if (!is_head || begin > begin_ || begin_ - begin < e.unpacked ||
        text_of(session_.range(object_, e.begin + local_size, name_size, room)) != name)
      throw error(errc::format, {"the zip archive's directory entry for '", name.substr(0, 80),
                                 "' does not match byte ", e.begin, "; copy the file again"})
          .at_offset(e.at);
    return {begin, e.unpacked};
  }

  static void once(entry& where, const entry& e) {
    if (where.at != 0) refuse(e, "appears twice");
    where = e;
  }
  static std::string_view name_of(const entry& e) {
    return e.name.ends_with(".npy") ? e.name.substr(0, e.name.size() - 4) : e.name;
  }
  [[noreturn]] static void refuse(const entry& e, std::string_view why) {
    throw error(errc::format, {"the member '", e.name.substr(0, 80), "' of the npz file ", why})
        .at_offset(e.at);
  }
  [[noreturn]] static void fail(const entry& e) {
    throw error(errc::format, "the zip archive's directory is damaged here; copy the file again")
        .at_offset(e.at);
  }
  static std::size_t place(std::uint64_t at) noexcept { return detail::to_size(at); }

  session_view session_;
  object_id object_;
  buffer room_;
  std::uint64_t begin_ = 0, size_ = 0, entries_ = 0;
};

PENSTOCK_INLINE zip_member find_zip_array(session_view session, object_id object, std::uint64_t size,
                                          std::string_view name) {
  return zip_directory(session, object, size).array(name);
}

PENSTOCK_INLINE stored_rows find_npz_rows(session_view session, object_id object, std::uint64_t size,
                                          std::string_view name, npy_type wanted) {
  const zip_member member = find_zip_array(session, object, size, name);
  try {
    return find_npy_rows(session, object, member.begin, member.size, wanted);
  } catch (error& e) {
    // an error with a file comes from the storage, and its offset is already in the file
    if (e.file().empty()) e.within(detail::text({"the array '", name, "'"}), member.begin);
    throw;
  }
}

}  // namespace detail
}  // namespace penstock::inline v0_1
