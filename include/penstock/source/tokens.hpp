// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/position.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/detail/stored_files.hpp>
#include <penstock/source/detail/token_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/storage/braces.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Numbers that can be tokens.
template <class T>
concept token_value =
    std::same_as<T, std::uint8_t> || std::same_as<T, std::uint16_t> || std::same_as<T, std::uint32_t> ||
    std::same_as<T, std::int16_t> || std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>;

/// Windows of a length that the type knows: `Length` tokens, and `Targets` more, so that the targets are the
/// inputs moved by one. A batch of them is written in place from the first one on.
template <std::uint64_t Length, std::uint64_t Targets = 1>
struct token_window {
  static_assert(Length > 0 && Length + Targets < (std::uint64_t{1} << 40),
                "penstock: token_window<Length, Targets> needs windows of at least one token");
  static constexpr std::uint64_t length = Length;
  static constexpr std::uint64_t targets = Targets;
  /// From where one window begins to where the next one does; 0 is `length`.
  std::uint64_t stride = 0;
  /// Whether a window must lie in one document, for files whose index knows them.
  bool within_documents = false;
};

/// Windows of a length that is known at run time.
struct token_windows {
  std::uint64_t length = 1024;
  std::uint64_t targets = 1;
  std::uint64_t stride = 0;
  bool within_documents = false;
};

namespace detail {

template <class W>
inline constexpr bool is_token_window = std::same_as<W, token_windows>;
template <std::uint64_t Length, std::uint64_t Targets>
inline constexpr bool is_token_window<token_window<Length, Targets>> = true;

template <class W>
struct token_shape {
  using type = given_shape;
  static type of(const W& w) noexcept { return {extents(w.length + w.targets)}; }
};
template <std::uint64_t Length, std::uint64_t Targets>
struct token_shape<token_window<Length, Targets>> {
  using type = known_shape<Length + Targets>;
  static type of(const token_window<Length, Targets>&) noexcept { return {}; }
};

/// How many windows of `span` tokens, `stride` apart, lie in `tokens`.
[[nodiscard]] constexpr std::uint64_t windows_in(std::uint64_t tokens, std::uint64_t span,
                                                 std::uint64_t stride) noexcept {
  return tokens < span ? 0 : (tokens - span) / stride + 1;
}

/// The files of a dataset of tokens, and where their windows are.
template <class Window, class Storage>
struct token_files : known_files<Storage> {
  token_files(Storage given, Window wanted, std::string_view name)
      : known_files<Storage>(std::move(given)), window(wanted), format(name) {
    constexpr std::uint64_t most = std::uint64_t{1} << 40;
    if (window.stride == 0) window.stride = window.length;
    if (window.length == 0)
      throw error(errc::argument, {format, "_tokens: windows need a length of at least one token"});
    if (window.length > most || window.targets > most)
      throw error(errc::argument, {format, "_tokens: windows of ", window.length, " + ", window.targets,
                                   " tokens are too long; length and targets go up to 2^40 each"});
    span = window.length + window.targets;
  }

  Window window;
  std::string format;
  std::uint64_t span = 0;
  std::uint64_t tokens = 0;
  std::vector<std::uint64_t> begins;  // by shard: where the tokens begin, in bytes
  // only where windows keep to documents, and for those that have any: the number of the first one, and the
  // token in the file where the document begins
  std::vector<std::uint64_t> first_windows;
  std::vector<std::uint64_t> first_tokens;

  [[nodiscard]] std::uint64_t windows(std::uint64_t count) const noexcept {
    return windows_in(count, span, window.stride);
  }

  /// `parse(session, object, signature, documents)` gives a file's `token_range`, and calls
  /// `documents(first token, tokens)` where there is an index and windows keep to them.
  template <std::size_t Width, class Parse>
  void read(const std::vector<object_id>& chosen, Parse&& parse) {
    auto session = this->where.connect();
    std::vector<manifest::shard> entries;
    std::uint64_t all = 0, longest = 0;
    for (const object_id object : chosen) {
      const object_signature signature = session.signature(object);
      const std::uint64_t before = all;
      const auto [range, index] =
          parse(session, object, signature.size, [&](std::uint64_t first, std::uint64_t count) {
            longest = std::max(longest, count);
            if (!window.within_documents || windows(count) == 0) return;
            first_windows.push_back(all);
            first_tokens.push_back(first);
            all += windows(count);
          });
      if (!window.within_documents) {
        longest = std::max(longest, range.count);
        all += windows(range.count);
      }
      const std::uint64_t content = hash_of_file(session, object, signature.size) ^ index;
      entries.push_back({this->where.names()[object], signature.size, all - before, range.count * Width,
                         fingerprint{}.add(content, span, window.stride, window.within_documents).value()});
      this->objects.push_back(object);
      this->signatures.push_back(signature);
      begins.push_back(range.begin);
      tokens += range.count;
    }
    if (all == 0)
      throw error(errc::argument, {format, "_tokens: no ", window.within_documents ? "document" : "file",
                                   " has the ", span, " tokens of a window; the longest has ", longest})
          .in_file(chosen.empty() ? "" : this->where.names()[chosen.front()]);
    first_windows.push_back(all);
    this->shards = manifest(std::move(entries));
  }
};

}  // namespace detail

/// The source that `raw_tokens`, `llmc_tokens` and `megatron_tokens` make: windows of the tokens of files.
template <token_value T, class Window, storage Storage>
class token_source {
  static_assert(detail::is_token_window<Window>,
                "penstock: tokens need token_window<1024>{} or token_windows{.length = 1024}");

  using files = detail::token_files<Window, Storage>;
  using session_type = typename Storage::session;
  using shape = detail::token_shape<Window>;

 public:
  using penstock_part = source_tag;
  using element = detail::stored_array<T, typename shape::type, session_type>;
  static constexpr std::string_view source_name = "tokens";

  class reader {
   public:
    struct worker {
      buffer scratch;
      std::size_t document = 0;
    };
    explicit reader(std::shared_ptr<const files> known) : known_(std::move(known)), open_(known_) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const manifest::place place = open_.locate(p.index);
      const std::uint64_t token = first_token(p.index, place, w.document);
      const std::uint64_t offset = known_->begins[place.shard] + token * sizeof(T);
      try {
        sink(element(shape::of(known_->window), open_.session(place.shard), known_->objects[place.shard],
                     offset, w.scratch, std::endian::native != std::endian::little));
        open_.confirm(place.shard);
      } catch (error& e) {
        open_.confirm(place.shard);
        e.in_file(known_->path(place.shard)).at_offset(offset);
        throw;
      }
    }
    /// The file and the number of the window's first token in it: "train.bin:1024".
    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = open_.locate(index);
      std::size_t document = 0;
      return detail::text({known_->path(place.shard), ":", first_token(index, place, document)});
    }
    void will_need(std::uint64_t index) const noexcept {
      if (index >= known_->shards.samples()) return;
      const manifest::place place = known_->shards.locate(index);
      std::size_t document = 0;
      open_.will_need(place.shard,
                      known_->begins[place.shard] + first_token(index, place, document) * sizeof(T),
                      known_->span * sizeof(T));
    }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return known_->span * sizeof(T); }

   private:
    // In the file. `document` is the one that was found last: samples often follow each other.
    [[nodiscard]] std::uint64_t first_token(std::uint64_t index, const manifest::place& place,
                                            std::size_t& document) const noexcept {
      if (!known_->window.within_documents) return place.sample * known_->window.stride;
      const auto& firsts = known_->first_windows;
      if (index < firsts[document] || index >= firsts[document + 1])
        document =
            static_cast<std::size_t>(std::upper_bound(firsts.begin(), firsts.end(), index) - firsts.begin()) -
            1;
      return known_->first_tokens[document] + (index - firsts[document]) * known_->window.stride;
    }

    std::shared_ptr<const files> known_;
    detail::open_files<Storage> open_;
  };

  explicit token_source(std::shared_ptr<const files> known) noexcept : known_(std::move(known)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return known_->shards.samples(); }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept {
    return known_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return known_->shards; }
  /// The tokens of all files, whether a window holds them or not.
  [[nodiscard]] std::uint64_t tokens() const noexcept { return known_->tokens; }
  /// Of the windows, and of each file's name, size and first and last 4 KiB, and of Megatron's indexes whole.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(known_->shards.fingerprint() ^ known_->span);
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({known_->format, "_tokens(", known_->objects.size(), " files, ", tokens(),
                         " tokens): ", size(), " windows of ", known_->window.length, " + ",
                         known_->window.targets, " tokens, ", known_->window.stride, " apart",
                         known_->window.within_documents ? ", within documents" : ""});
  }
  [[nodiscard]] reader open() const { return reader(known_); }

 private:
  std::shared_ptr<const files> known_;
};

namespace detail {

template <class T, class Window, class Storage, class Parse>
[[nodiscard]] token_source<T, Window, Storage> tokens_of_plain_files(Storage where, Window window,
                                                                     std::string_view format,
                                                                     std::uint64_t head_bytes,
                                                                     Parse&& parse) {
  const std::shared_ptr<token_files<Window, Storage>> known(
      new token_files<Window, Storage>(std::move(where), window, format));
  if (window.within_documents)
    throw error(errc::argument, {known->format,
                                 "_tokens: these files do not say where documents end, so that windows "
                                 "cannot keep to them; Megatron's index does"});
  std::vector<object_id> objects(known->where.names().size());
  for (std::size_t i = 0; i < objects.size(); ++i) objects[i] = static_cast<object_id>(i);
  buffer room;
  known->template read<sizeof(T)>(
      objects, [&](auto& session, object_id object, std::uint64_t size, const auto&) {
        const bytes_view head = range_of(session, object, 0, std::min(size, head_bytes), room);
        return std::pair<token_range, std::uint64_t>(parse(head, size, known->where.names()[object]), 0);
      });
  return token_source<T, Window, Storage>(known);
}

/// The `.bin` and `.idx` of a name with either ending, or with none.
template <class = void>
[[nodiscard]] std::string megatron_prefix(std::string_view name) {
  if (name.ends_with(".bin") || name.ends_with(".idx")) name.remove_suffix(4);
  return std::string(name);
}

}  // namespace detail

/// Token files without a header: nanoGPT's `train.bin` and its like.
///
///     auto text = raw_tokens<std::uint16_t>("train.bin", token_window<1024>{}) | shuffle(seed) | batch(32);
///     auto some = raw_tokens<std::uint32_t>("part-{00..63}.bin", token_windows{.length = 2048, .stride = 512});
///
/// In: a pattern with braces, which is `mapped_file`, or any storage; all its files are one dataset. Out: an
/// array expression of `length + targets` tokens in one row, a view of the mapping until it is written to its
/// slot. `token_window<...>` gives rows of a shape that the type knows, `token_windows` of one known at run
/// time. The windows of a file begin every `stride` tokens and lie in the file whole; tokens behind the last
/// whole one are in none.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Where a window lies is arithmetic:
/// there is no table of windows, and memory is 60 bytes or so for each file.
/// Cost per sample: a binary search among the files and one copy of the row; with a storage that has no views
/// one read; no allocation. Making the plan reads the ends of each file.
/// Threads: any number at once.
/// Throws `errc::format`, with file and offset, for a file that is no whole number of tokens or has a header;
/// `errc::argument` when no file has as many tokens as a window; `errc::io`, also for a file that was changed
/// after the plan was made. For one that shrinks while it is mapped see `mapped_file_options`.
/// Source: nanoGPT, data/openwebtext/prepare.py.
template <token_value T, storage Storage, class Window>
[[nodiscard]] token_source<T, Window, Storage> raw_tokens(Storage where, Window window) {
  return detail::tokens_of_plain_files<T>(std::move(where), window, "raw", 8,
                                          [](bytes_view head, std::uint64_t size, const std::string& path) {
                                            return detail::parse_raw<T>(head, size, path);
                                          });
}
template <token_value T, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> raw_tokens(std::string_view pattern, Window window) {
  return raw_tokens<T>(mapped_file(pattern), window);
}

/// The same for the files of llm.c, which have a header of 1024 bytes: GPT-2's of `std::uint16_t` and Llama
/// 3's of `std::uint32_t`.
///
/// Throws `errc::format` also for another magic number or version, and where the number of tokens in the
/// header is not what follows it.
/// Source: llm.c, dev/data/data_common.py and llmc/dataloader.h.
///
///     auto web = llmc_tokens<std::uint16_t>("fineweb_train_{000001..000103}.bin", token_window<1024>{});
template <token_value T, storage Storage, class Window>
[[nodiscard]] token_source<T, Window, Storage> llmc_tokens(Storage where, Window window) {
  return detail::tokens_of_plain_files<T>(std::move(where), window, "llmc", detail::llmc_header_bytes,
                                          [](bytes_view head, std::uint64_t size, const std::string& path) {
                                            return detail::parse_llmc<T>(head, size, path);
                                          });
}
template <token_value T, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> llmc_tokens(std::string_view pattern, Window window) {
  return llmc_tokens<T>(mapped_file(pattern), window);
}

/// The same for Megatron's datasets, pairs of `PREFIX.bin` and `PREFIX.idx`. The pattern gives the prefixes,
/// with one of the endings or without; a storage must name both files of each.
///
/// With `within_documents` no window crosses the end of a document, and documents shorter than a window are
/// in none; that takes 16 bytes for each document that has a window, and a binary search among them. Without
/// it documents follow each other as they lie in the file. Making the plan reads each index once.
/// Throws `errc::format` also for an index with another magic, version or type of tokens, one that does not
/// fit its own size or that of its tokens, and one whose sequences do not follow each other;
/// `errc::argument` for a storage where one of the two is not named.
/// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
///
///     auto text = megatron_tokens<std::uint16_t>("openwebtext_text_document",
///                                                token_window<1024>{.within_documents = true});
template <token_value T, storage Storage, class Window>
[[nodiscard]] token_source<T, Window, Storage> megatron_tokens(Storage where, Window window) {
  const std::shared_ptr<detail::token_files<Window, Storage>> known(
      new detail::token_files<Window, Storage>(std::move(where), window, "megatron"));
  const auto names = known->where.names();
  std::unordered_map<std::string, object_id> indexes;
  std::vector<object_id> objects;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].ends_with(".idx"))
      indexes.emplace(detail::megatron_prefix(names[i]), static_cast<object_id>(i));
    else
      objects.push_back(static_cast<object_id>(i));
  }
  buffer room;
  known->template read<sizeof(T)>(objects, [&](auto& session, object_id object, std::uint64_t size,
                                               const auto& document) {
    const auto found = indexes.find(detail::megatron_prefix(names[object]));
    if (found == indexes.end())
      throw error(errc::argument, "megatron_tokens: the storage names no .idx for this file")
          .in_file(names[object]);
    const bytes_view bytes = detail::range_of(session, found->second, 0, session.size(found->second), room);
    const detail::megatron_index index(bytes, names[found->second]);
    return std::pair(index.template read<T>(size, names[object], document), index.hash());
  });
  return token_source<T, Window, Storage>(known);
}
template <token_value T, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> megatron_tokens(std::string_view pattern, Window window) {
  std::vector<std::string> names;
  for (const std::string& name : expand_braces(pattern)) {
    const std::string prefix = detail::megatron_prefix(name);
    names.push_back(prefix + ".bin");
    names.push_back(prefix + ".idx");
  }
  return megatron_tokens<T>(mapped_file(std::move(names)), window);
}

}  // namespace penstock::inline v0_1
