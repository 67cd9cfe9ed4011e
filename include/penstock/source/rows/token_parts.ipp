// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/rows/token_parts.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/unpacked_copy.hpp>
#include <penstock/source/files/whole_file.hpp>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>

namespace penstock::inline v0_1::detail {

// A part has the tokens, the length of each document in 8 bytes, and this foot, whose numbers are those
// below.
inline constexpr std::string_view part_magic = "PENSTTOK";
inline constexpr std::uint32_t part_version = 1;
inline constexpr std::size_t part_foot = 128;

struct part_facts {
  std::uint64_t dataset, name, code, first, documents, tokens, content;

  [[nodiscard]] std::array<std::byte, part_foot> bytes() const noexcept {
    std::array<std::byte, part_foot> foot{};
    store_head(foot, part_magic, part_version, {dataset, name, code, first, documents, tokens, content});
    return foot;
  }
  /// What a foot says; `bytes()` tells whether it is one.
  [[nodiscard]] static part_facts load(bytes_view foot) noexcept {
    const auto number = [&](std::size_t i) { return load_little<std::uint64_t>(foot.data() + 16 + 8 * i); };
    return {number(0), number(1), number(2), number(3), number(4), number(5), number(6)};
  }
};

[[nodiscard]] inline std::uint64_t megatron_code(token_type type) noexcept {
  std::uint64_t code = 1;
  while (!(megatron_type(static_cast<unsigned>(code)) == type)) ++code;
  return code;
}
[[nodiscard]] inline std::string part_path(const std::string& prefix, std::uint64_t number) {
  return text({prefix, ".penstock-part-", number});
}
[[nodiscard]] inline bool file_is_there(const std::string& path) noexcept {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

// Removes the parts from this number on, the last one first, and what was left of parts that were being
// written.
PENSTOCK_INLINE void remove_parts_from(const std::string& prefix, std::uint64_t first) {
  const std::string folder = folder_of(prefix);
  const std::string start = prefix.substr(prefix.rfind('/') + 1) + ".penstock-part-";
  std::vector<std::uint64_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(::opendir(folder.c_str()), &::closedir);
  while (const dirent* const entry = listed ? ::readdir(listed.get()) : nullptr) {
    const std::string name(static_cast<const char*>(entry->d_name));
    if (!name.starts_with(start)) continue;
    const std::string_view rest = std::string_view(name).substr(start.size());
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    std::uint64_t number = 0;
    for (const char digit : rest.substr(0, digits)) number = 10 * number + static_cast<unsigned>(digit - '0');
    if (rest.substr(digits).starts_with(".tmp-"))
      ::unlink((folder + "/" + name).c_str());
    else if (digits == rest.size() && number >= first)
      numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  for (; !numbers.empty(); numbers.pop_back()) ::unlink(part_path(prefix, numbers.back()).c_str());
}

PENSTOCK_INLINE bool has_token_parts(const std::string& prefix) {
  return file_is_there(part_path(prefix, 0));
}
PENSTOCK_INLINE void remove_token_parts(const std::string& prefix) { remove_parts_from(prefix, 0); }

PENSTOCK_INLINE token_parts::token_parts(const documents_wanted& wanted, std::uint64_t part_tokens)
    : wanted_(wanted), part_tokens_(std::max<std::uint64_t>(1, part_tokens)) {
  while (read_part(parts_)) ++parts_;
  remove_parts_from(wanted_.prefix, parts_);
}

PENSTOCK_INLINE bool token_parts::read_part(std::uint64_t number) {
  const std::string path = part_path(wanted_.prefix, number);
  if (!file_is_there(path)) return false;
  const buffer whole = read_whole_file(path);
  const bytes_view bytes = whole.view();
  if (bytes.size() < part_foot) return false;
  const bytes_view foot = bytes.last(part_foot);
  const part_facts facts = part_facts::load(foot);
  const auto written = facts.bytes();
  const std::uint64_t room = bytes.size() - part_foot;
  if (!std::equal(foot.begin(), foot.end(), written.begin()) || facts.dataset != wanted_.dataset ||
      facts.name != penstock::fingerprint{}.add(wanted_.name).value() ||
      facts.code != megatron_code(wanted_.type) || facts.first != lengths_.size() ||
      facts.documents > room / 8 || facts.tokens > room / wanted_.type.width ||
      facts.tokens * wanted_.type.width + 8 * facts.documents != room)
    return false;
  std::uint64_t content = 0, at = 0;
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 0; i < facts.documents; ++i) {
    const auto length = load_little<std::uint64_t>(bytes.data() + to_size(room - 8 * (facts.documents - i)));
    if (length > facts.tokens - at) return false;
    content = hash_bytes(
        content, bytes.subspan(to_size(at * wanted_.type.width), to_size(length * wanted_.type.width)));
    at += length;
    lengths.push_back(length);
  }
  if (at != facts.tokens || content != facts.content) return false;
  lengths_.insert(lengths_.end(), lengths.begin(), lengths.end());
  return true;
}

PENSTOCK_INLINE void token_parts::add(bytes_view document) {
  if (!open_) {
    open_.emplace(part_path(wanted_.prefix, parts_));
    first_ = lengths_.size();
    tokens_ = content_ = 0;
  }
  writing_ = true;
  open_->write(document);
  writing_ = false;
  content_ = hash_bytes(content_, document);
  const std::uint64_t length = document.size() / wanted_.type.width;
  lengths_.push_back(length);
  tokens_ += length;
  // a document counts as a token, so that parts of empty ones end, too
  if (tokens_ + (lengths_.size() - first_) >= part_tokens_) finish();
}

PENSTOCK_INLINE void token_parts::finish() {
  if (writing_) open_.reset();  // a write has failed
  if (!open_) return;
  writing_ = true;
  std::array<std::byte, 8> eight;
  for (std::size_t i = to_size(first_); i < lengths_.size(); ++i) {
    store_little(eight.data(), lengths_[i]);
    open_->write(eight);
  }
  open_->write(part_facts{wanted_.dataset, penstock::fingerprint{}.add(wanted_.name).value(),
                          megatron_code(wanted_.type), first_, lengths_.size() - first_, tokens_, content_}
                   .bytes());
  open_->commit();
  open_.reset();
  writing_ = false;
  ++parts_;
}

PENSTOCK_INLINE void token_parts::join(const std::string& path) const {
  output_file out(path);
  for (std::uint64_t i = 0; i < parts_; ++i) {
    const std::string part = part_path(wanted_.prefix, i);
    const buffer whole = read_whole_file(part);
    const std::uint64_t bytes =
        whole.size() < part_foot ? whole.size() + 1
                                 : part_facts::load(whole.view().last(part_foot)).tokens * wanted_.type.width;
    if (bytes > whole.size())
      throw error(errc::io, "the part was changed while it was in use; call tokenised again").in_file(part);
    out.write(whole.view().first(to_size(bytes)));
  }
  out.commit();
}

// Calls `sink(bytes)` for the bytes of an index, piece by piece.
template <class Sink>
void each_index_piece(token_type type, std::span<const std::uint64_t> lengths, Sink&& sink) {
  const std::uint64_t n = lengths.size();
  std::vector<std::byte> piece;
  const auto put = [&]<class Number>(Number number) {
    const std::size_t at = piece.size();
    piece.resize(at + sizeof(Number));
    store_little(piece.data() + at, number);
    if (piece.size() >= (std::size_t{1} << 16)) {
      sink(bytes_view(piece));
      piece.clear();
    }
  };
  for (const char letter : std::string_view("MMIDIDX\0\0", 9)) put(static_cast<std::uint8_t>(letter));
  put(std::uint64_t{1});
  put(static_cast<std::uint8_t>(megatron_code(type)));
  put(n);
  put(n + 1);
  for (const std::uint64_t length : lengths) put(static_cast<std::uint32_t>(length));
  std::uint64_t offset = 0;
  for (const std::uint64_t length : lengths) {
    put(offset);
    offset += length * type.width;
  }
  for (std::uint64_t i = 0; i <= n; ++i) put(i);
  sink(bytes_view(piece));
}

PENSTOCK_INLINE void write_documents(const documents_wanted& wanted, const std::string& values,
                                     const token_parts& parts) {
  const std::string idx = wanted.prefix + ".idx";
  ::unlink(idx.c_str());
  parts.join(wanted.prefix + ".bin");
  values_header header;
  header.kind = value_kind::natural;
  header.dataset = wanted.dataset;
  write_values(values, header, wanted.name, parts.lengths(), {});
  output_file out(idx);
  each_index_piece(wanted.type, parts.lengths(), [&](bytes_view piece) { out.write(piece); });
  out.commit();
}

PENSTOCK_INLINE documents_fault check_documents(const documents_wanted& wanted, const values_file& lengths) {
  const std::string idx = wanted.prefix + ".idx", bin = wanted.prefix + ".bin";
  if (!file_is_there(idx) || !file_is_there(bin)) return documents_fault::missing;
  const buffer there = read_whole_file(idx);
  if (there.size() > 17) {
    const auto code = std::to_integer<unsigned>(there.view()[17]);
    const bool begins = text_of(there.view().first(9)) == std::string_view("MMIDIDX\0\0", 9);
    if (begins && code != megatron_code(wanted.type) && megatron_type(code).width != 0)
      throw error(errc::argument, {"these tokens have ", megatron_type(code).width,
                                   " bytes each or another sign, and another type was asked for; write "
                                   "tokenised<T> of theirs, name another path, or delete them"})
          .in_file(idx)
          .at_offset(17);
  }
  std::vector<std::uint64_t> all(to_size(lengths.header().samples));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = lengths.word(i);
  std::uint64_t at = 0;
  bool same = true;
  each_index_piece(wanted.type, all, [&](bytes_view piece) {
    same = same && piece.size() <= there.size() - to_size(at) &&
           std::memcmp(piece.data(), there.data() + to_size(at), piece.size()) == 0;
    at += same ? piece.size() : 0;
  });
  const std::uint64_t tokens = std::accumulate(all.begin(), all.end(), std::uint64_t{0});
  const auto version = version_of_file(bin);
  same = same && at == there.size() && version && version->size == tokens * wanted.type.width;
  return same ? documents_fault::none : documents_fault::damaged;
}

PENSTOCK_INLINE void refuse_foreign_documents(const std::string& prefix) {
  const std::string idx = prefix + ".idx", bin = prefix + ".bin";
  // Another process may be making them: the tokens appear while there are parts, the values before the parts
  // go and before the index, and so they are looked for last.
  const bool foreign = (file_is_there(idx) || (file_is_there(bin) && !has_token_parts(prefix))) &&
                       !file_is_there(prefix + ".penstock-values");
  if (foreign)
    throw error(errc::argument,
                "these tokens were not made by tokenised, which would overwrite them; name another path")
        .in_file(file_is_there(idx) ? idx : bin);
}

}  // namespace penstock::inline v0_1::detail
