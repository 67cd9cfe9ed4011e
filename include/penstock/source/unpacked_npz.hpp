// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<zlib.h>)
#error "penstock/source/unpacked_npz.hpp needs zlib: link penstock::zlib"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/layouts/zip_archive.hpp>
#include <penstock/source/files/mapped_paths.hpp>
#include <penstock/source/unpacked.hpp>

#include <zlib.h>

namespace penstock::inline v0_1 {

namespace detail {

/// Writes a copy of a zip archive whose members are not compressed.
/// Source: PKWARE's APPNOTE.TXT, version 6.3.10, sections 4.3 and 4.5.3; RFC 1951.
class npz_copy {
 public:
  npz_copy(const std::string& path, std::uint64_t limit)
      : session_(mapped_file(std::vector<std::string>{path}).connect()),
        all_(session_.view(0, 0, session_.size(0))),
        limit_(limit) {}

  [[nodiscard]] bool is_packed() {
    zip_archive archive(all_);
    const std::vector<zip_entry> entries = archive.all();
    session_.confirm(0);
    return std::any_of(entries.begin(), entries.end(), [](const zip_entry& e) { return e.method != 0; });
  }
  void write(output_file& output) {
    zip_archive archive(all_);
    std::string directory;
    const std::vector<zip_entry> entries = archive.all();
    for (const zip_entry& one : entries) {
      // with its place, and only one of a name
      const std::optional<zip_entry> member = archive.find(one.name);
      if (member) directory += add(*member, output);
    }
    const std::uint64_t begin = output.size(), end = begin + directory.size();
    // The end record of large archives says all, the other one nothing.
    directory += "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) +
                 little(entries.size(), 8) + little(entries.size(), 8) + little(directory.size(), 8) +
                 little(begin, 8);
    directory += "PK\6\7" + little(0, 4) + little(end, 8) + little(1, 4);
    directory += "PK\5\6" + little(0, 4) + little(none, 2) + little(none, 2) + little(none, 4) +
                 little(none, 4) + little(0, 2);
    output.write(bytes_of(directory));
    session_.confirm(0);
  }

 private:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] static std::string little(std::uint64_t value, std::size_t bytes) {
    std::string made;
    for (std::size_t i = 0; i < bytes; ++i) made += static_cast<char>(value >> (8 * i) & 255);
    return made;
  }
  /// Copies a member, and returns its entry in the directory.
  [[nodiscard]] std::string add(const zip_entry& member, output_file& output) {
    constexpr std::uint64_t alignment = 64, local_size = 30, wide_size = 20;
    const std::uint64_t at = output.size();
    if (member.unpacked > limit_ || at > limit_ - member.unpacked)
      throw error(errc::limit, {"the file unpacks to more than the limit of ", limit_,
                                " bytes; raise unpacked_options::limit if it is meant to"});
    // flags: that the name is UTF-8; the time: 1980, as zip has no earlier one
    const std::string head = little(45, 2) + little(member.flags & 0x800u, 2) + little(0, 2) + little(0, 2) +
                             little(33, 2) + little(member.checksum, 4) + little(none, 4) + little(none, 4) +
                             little(member.name.size(), 2);
    const std::uint64_t before = at + local_size + member.name.size() + wide_size + 4;
    const std::uint64_t padding = (alignment - before % alignment) % alignment;
    const std::string name(member.name), sizes = little(member.unpacked, 8) + little(member.unpacked, 8);
    const std::string local = "PK\3\4" + head + little(wide_size + 4 + padding, 2) + name + little(1, 2) +
                              little(16, 2) + sizes + little(0xd935, 2) + little(padding, 2) +
                              std::string(to_size(padding), '\0');
    output.write(bytes_of(local));
    content(member, output);
    return "PK\1\2" + little(45, 2) + head + little(28, 2) + std::string(10, '\0') + little(none, 4) + name +
           little(1, 2) + little(24, 2) + sizes + little(at, 8);
  }
  void content(const zip_entry& member, output_file& output) {
    bytes_view packed = all_.subspan(to_size(member.begin), to_size(member.packed));
    uLong checksum = ::crc32(0, nullptr, 0);
    std::uint64_t size = 0;
    const auto put = [&](bytes_view some) {
      checksum =
          ::crc32(checksum, reinterpret_cast<const Bytef*>(some.data()), static_cast<uInt>(some.size()));
      size += some.size();
      if (size > member.unpacked) member.refuse("is damaged: it has more bytes than the directory says");
      output.write(some);
    };
    if (member.method == 0) {
      for (; !packed.empty(); packed = packed.subspan(std::min(packed.size(), piece)))
        put(packed.first(std::min(packed.size(), piece)));
    } else if (member.method == 8) {
      inflate(member, packed, put);
    } else {
      member.refuse("is compressed by another method than deflate; save it with numpy.savez_compressed");
    }
    if (size != member.unpacked) member.refuse("is damaged: it has fewer bytes than the directory says");
    if (checksum != member.checksum)
      throw error(errc::checksum,
                  {"the array '", member.array().substr(0, 80), "' does not match the npz file's checksum"})
          .at_offset(member.begin);
  }
  template <class Put>
  static void inflate(const zip_entry& member, bytes_view packed, Put&& put) {
    struct stream : z_stream, unmovable {
      stream() : z_stream{} {
        if (::inflateInit2(this, -15) != Z_OK) throw std::bad_alloc();
      }
      ~stream() { ::inflateEnd(this); }
    } z;
    buffer room(piece);
    for (int result = Z_OK; result != Z_STREAM_END;) {
      const std::size_t offered = std::min(packed.size(), piece);
      // zlib does not write there
      z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
      z.avail_in = static_cast<uInt>(offered);
      z.next_out = reinterpret_cast<Bytef*>(room.data());
      z.avail_out = static_cast<uInt>(piece);
      result = ::inflate(&z, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      const std::size_t taken = offered - z.avail_in, made = piece - z.avail_out;
      if ((result != Z_OK && result != Z_STREAM_END) || (taken == 0 && made == 0 && result != Z_STREAM_END))
        member.refuse("is damaged");
      packed = packed.subspan(taken);
      put(room.view().first(made));
    }
    if (!packed.empty()) member.refuse("is damaged: there is something behind its content");
  }

  static constexpr std::size_t piece = std::size_t{1} << 20;

  mapped_file::session session_;
  bytes_view all_;
  std::uint64_t limit_;
};

}  // namespace detail

/// Makes copies of compressed npz files (`numpy.savez_compressed`) in which rows can be reached, and returns
/// their paths, as `unpacked` does for files that are compressed as a whole.
///
///     auto images = npz_rows<std::uint8_t>(unpacked_npz("part-{00..07}.npz"), "images") | shuffle | batch(256);
///
/// In: a pattern of names or a list of paths of local files. Out: for each file its copy, which is an npz
/// file with the same arrays, or the file itself if no array of it is compressed. Copies are made, kept, and
/// made anew as those of `unpacked`.
/// Cost: disk space for all arrays; once, the time to inflate and write them, one file per thread; after that
/// two stat calls and a read of 64 bytes per file.
/// Throws, with the file, what `unpacked` throws; `errc::format` for what is no zip archive or is damaged,
/// and for methods other than deflate; `errc::checksum`.
/// Threads: any number may call it.
/// Source: numpy/lib/npyio.py; PKWARE's APPNOTE.TXT, version 6.3.10.
[[nodiscard]] inline std::vector<std::string> unpacked_npz(detail::mapped_paths paths,
                                                           const unpacked_options& options = {}) {
  return detail::unpacked_paths(
      paths.names, options, [](const std::string& packed, const unpacked_options& chosen) {
        struct copy_of {
          const std::string& path;
          std::uint64_t limit;
          std::optional<detail::npz_copy> made;
          detail::npz_copy& get() { return made ? *made : made.emplace(path, limit); }
        } copy{packed, chosen.limit, {}};
        return detail::copied_path(
            packed, chosen,
            {&copy, [](void* of) { return static_cast<copy_of*>(of)->get().is_packed(); },
             [](void* of, detail::output_file& output) { static_cast<copy_of*>(of)->get().write(output); }});
      });
}

}  // namespace penstock::inline v0_1
