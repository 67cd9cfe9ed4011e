// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/values_file.hpp>

#include <penstock/source/files/hash_bytes.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE std::array<std::byte, values_header::size> values_header::bytes() const noexcept {
  std::array<std::byte, size> to{};
  store_head(to, magic, version,
             {static_cast<std::uint64_t>(kind), dataset, samples, name_bytes, texts, text_bytes, content});
  return to;
}

PENSTOCK_INLINE values_file::outcome values_file::open(const std::string& path) {
  const owned_descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (opened.get() < 0) {
    const int code = errno;
    const bool missing = code == ENOENT || code == ENOTDIR;
    error why(errc::io, {"cannot open the derived index: ", std::generic_category().message(code),
                         missing ? "; derive(...) makes it" : ""});
    why.in_file(path);
    if (!missing) throw why;
    return {nullptr, values_fault::missing, why};
  }
  struct stat status {};
  if (::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode))
    throw error(errc::io, "the derived index is not a regular file; name a file in a folder").in_file(path);
  const auto size = static_cast<std::size_t>(status.st_size);
  std::shared_ptr<values_file> made(new values_file);
  made->path_ = path;
  if (size != 0) {
    void* const where = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, opened.get(), 0);
    if (where == MAP_FAILED) {
      const int code = errno;
      throw error(errc::io, {"cannot map the derived index: ", std::generic_category().message(code)})
          .in_file(path);
    }
    made->mapped_ = {static_cast<const std::byte*>(where), size};
    made->bytes_ = made->mapped_;
  }
  return checked(std::move(made));
}

PENSTOCK_INLINE values_file::~values_file() {
  if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

PENSTOCK_INLINE values_file::outcome values_file::checked(std::shared_ptr<values_file> made) {
  outcome result;
  made->check(result);
  if (result.fault == values_fault::none) result.file = std::move(made);
  return result;
}

PENSTOCK_INLINE void values_file::check(outcome& result) {
  const auto refuse = [&](values_fault fault, std::uint64_t offset, std::initializer_list<piece> what) {
    result.fault = fault;
    result.why = error(errc::format, what);
    result.why.in_file(path_).at_offset(offset);
  };
  using fault = values_fault;
  constexpr std::string_view again = "; delete it, and derive(...) will rebuild it";
  const std::uint64_t there = bytes_.size();
  const auto short_by = [&](std::uint64_t wanted) {
    refuse(fault::damaged, there,
           {"the derived index has ", there, " bytes and should have ", wanted, again});
  };
  const std::size_t known = bytes_.size() < 8 ? bytes_.size() : 8;
  if (known != 0 && std::memcmp(bytes_.data(), values_header::magic.data(), known) != 0)
    return refuse(
        fault::foreign, 0,
        {"this is not a derived index, which begins with ", values_header::magic, "; name another file"});
  if (there < values_header::size) return short_by(values_header::size);
  const auto number = [this](std::size_t at) { return load_little<std::uint64_t>(bytes_.data() + at); };
  const auto version = load_little<std::uint32_t>(bytes_.data() + 8);
  if (version > values_header::version) {
    return refuse(fault::newer, 8,
                  {"the derived index is of version ", version, ", and this program reads version ",
                   values_header::version, "; use a newer one, or name another file"});
  }
  values_header& h = header_;
  h.kind = static_cast<value_kind>(load_little<std::uint32_t>(bytes_.data() + 16));
  h.dataset = number(24);
  h.samples = number(32);
  h.name_bytes = number(40);
  h.texts = number(48);
  h.text_bytes = number(56);
  h.content = number(64);
  const auto written = h.bytes();
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (written[i] != bytes_[i] && i < values_header::size - 8) {
      return refuse(fault::damaged, i, {"the head of the derived index is damaged", again});
    }
    if (written[i] != bytes_[i]) {
      return refuse(fault::damaged, values_header::size - 8,
                    {"the head of the derived index does not have its checksum", again});
    }
  }
  constexpr std::uint64_t maximum = std::uint64_t{1} << 58;  // keeps sums of sizes from overflowing
  const bool texts = h.kind == value_kind::text;
  if (h.kind == value_kind::none || h.kind > value_kind::text)
    return refuse(fault::damaged, 16, {"the derived index has values of an unknown kind", again});
  if (h.samples > maximum || h.texts > maximum || h.text_bytes > maximum || h.name_bytes > maximum ||
      (!texts && (h.texts != 0 || h.text_bytes != 0)))
    return refuse(fault::damaged, 32, {"the head of the derived index has impossible numbers", again});
  if (h.file_size() != there) return short_by(h.file_size());
  if (checksum(bytes_.subspan(values_header::size)) != h.content)
    return refuse(fault::damaged, values_header::size,
                  {"what follows the head of the derived index does not have its checksum", again});
  std::uint64_t end = 0;
  for (std::uint64_t t = 0; t < h.texts; ++t) {
    if (text_end(t) < end || text_end(t) > h.text_bytes)
      return refuse(fault::damaged, h.text_ends_at() + 8 * t,
                    {"a text of the derived index ends where it cannot", again});
    end = text_end(t);
  }
  if (end != h.text_bytes)
    return refuse(fault::damaged, h.texts_at(), {"texts of the derived index belong to no value", again});
  for (std::uint64_t i = 0; texts && i < h.samples; ++i) {
    if (word(i) >= h.texts)
      return refuse(fault::damaged, values_header::size + 8 * i,
                    {"a value of the derived index is text ", word(i), " of ", h.texts, again});
  }
}

PENSTOCK_INLINE void write_values(const std::string& path, values_header header, std::string_view name,
                                  std::span<const std::uint64_t> values, std::span<const std::string> texts) {
  header.samples = values.size();
  header.name_bytes = name.size();
  header.texts = texts.size();
  header.text_bytes = 0;
  for (const std::string& one : texts) header.text_bytes += one.size();
  buffer rest(detail::to_size(header.file_size() - values_header::size));
  std::byte* to = rest.data();
  const auto put = [&to](std::uint64_t value) {
    store_little(to, value);
    to += sizeof(value);
  };
  const auto copy = [&to](std::string_view text) {
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    to += text.size();
  };
  for (const std::uint64_t value : values) put(value);
  std::uint64_t end = 0;
  for (const std::string& one : texts) put(end += one.size());
  for (const std::string& one : texts) copy(one);
  copy(name);
  header.content = checksum(rest.view());
  output_file out(path);
  out.write(header.bytes());
  out.write(rest.view());
  out.commit();
}

}  // namespace detail
}  // namespace penstock::inline v0_1
