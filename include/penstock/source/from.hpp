// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/prefetch_lines.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/hash_bytes.hpp>

#include <atomic>

namespace penstock::inline v0_1 {

namespace detail {

template <class R>
concept iterable = requires(R& r) {
  { std::begin(r) } -> std::input_iterator;
  { std::begin(r) != std::end(r) } -> std::convertible_to<bool>;
};
template <class R>
concept sized_random_access = iterable<const R> && requires(const R& r) {
  { std::begin(r) } -> std::random_access_iterator;
  { std::size(r) } -> std::integral;
};
template <class R>
concept names_a_file = std::convertible_to<const R&, std::string_view> || requires(const R& r) {
  { r.filename() } -> std::same_as<R>;
};
template <class R>
using iterated_value = std::iter_value_t<decltype(std::begin(std::declval<R&>()))>;

/// Types whose bytes are their value: no padding with unspecified contents, no pointers to anything.
template <class T>
concept plain_bits = (std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T> &&
                      !std::is_pointer_v<T>) ||
                     std::floating_point<T>;

/// The bytes of a sample's values.
template <class T>
  requires requires(const T& e) {
    e.size();
    sizeof(*e.data());
  }
std::uint64_t payload_of(const T& e) {
  return e.size() * sizeof(*e.data());
}
template <class T>
std::uint64_t payload_of(const strided_view<T>& e) {
  return e.shape().elements() * sizeof(T);
}

}  // namespace detail

/// The indexed source that `from` makes of a random-access range.
template <detail::sized_random_access Range>
class from_source : public opens_as_plan<from_source<Range>> {
  using difference = std::iter_difference_t<decltype(std::begin(std::declval<const Range&>()))>;

 public:
  using penstock_part = source_tag;
  using element = detail::iterated_value<const Range>;
  static constexpr std::string_view source_name = "from";
  static constexpr bool in_one_piece = std::is_trivially_copyable_v<element> && requires(const Range& r) {
    { std::data(r) } -> std::convertible_to<const element*>;
  };

  class reader {
   public:
    struct worker {};
    static constexpr reader_traits traits = {.in_memory = in_one_piece};
    explicit reader(shared<const Range> range) noexcept : range_(std::move(range)) {}

    template <class Sink>
    void evaluate(position p, worker&, Sink&& sink) const {
      auto&& item = std::begin(*range_)[static_cast<difference>(p.index)];
      if constexpr (std::is_trivially_copyable_v<element> && sizeof(element) <= 2 * sizeof(void*)) {
        sink(static_cast<element>(item));
      } else {
        const element& sample = item;
        sink(sample);
      }
    }
    /// Prefetches a sample that will be evaluated soon.
    [[gnu::always_inline]] void prefetch(position p) const noexcept
      requires in_one_piece
    {
      detail::prefetch_lines(std::data(*range_) + p.index, sizeof(element));
    }
    [[nodiscard]] std::string key(std::uint64_t index) const { return std::to_string(index); }
    /// The mean payload of a sample, estimated from a few of them.
    [[nodiscard]] std::uint64_t bytes_per_sample() const {
      if constexpr (requires(const element& e) { detail::payload_of(e); }) {
        const auto count = static_cast<std::uint64_t>(std::size(*range_)), step = count / 16 + 1;
        std::uint64_t bytes = 0, seen = 0;
        for (std::uint64_t i = 0; i < count; i += step, ++seen) {
          const element& e = std::begin(*range_)[static_cast<difference>(i)];
          bytes += detail::payload_of(e);
        }
        return seen == 0 ? 0 : bytes / seen;
      } else {
        return sizeof(element);
      }
    }

   private:
    shared<const Range> range_;
  };

  explicit from_source(Range range) : range_(new const Range(std::move(range))) {}

  [[nodiscard]] std::uint64_t size() const { return static_cast<std::uint64_t>(std::size(*range_)); }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return nullptr; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"from(", size(), " samples in memory)"});
  }
  /// Covers the number of samples and, if they are plain values without padding, texts or bytes, the first
  /// and last MiB.
  [[nodiscard]] std::uint64_t fingerprint() const {
    std::uint64_t hash = mix64(size() ^ 0x66726f6d);
    if constexpr (detail::plain_bits<element> && requires {
                    { std::data(*range_) } -> std::convertible_to<const element*>;
                  }) {
      return detail::hash_ends(
          hash, std::as_bytes(std::span<const element>(std::data(*range_), std::size(*range_))));
    } else if constexpr (std::convertible_to<const element&, bytes_view> ||
                         std::convertible_to<const element&, std::string_view>) {
      const auto bytes = [](const element& e) -> bytes_view {
        if constexpr (std::convertible_to<const element&, bytes_view>)
          return e;
        else
          return bytes_of(e);
      };
      const auto add_until_full = [&](auto first, auto last) {
        for (std::size_t seen = 0; first != last && seen < 1_MiB; ++first) {
          const element& item = *first;
          hash = detail::hash_ends(hash, bytes(item));
          seen += bytes(item).size() + 1;
        }
      };
      const auto first = std::begin(*range_);
      const auto last = first + static_cast<difference>(size());
      add_until_full(first, last);
      add_until_full(std::make_reverse_iterator(last), std::make_reverse_iterator(first));
    }
    return hash;
  }
  [[nodiscard]] reader connect() const { return reader(range_); }

 private:
  shared<const Range> range_;
};

/// The forward-only source that `from` makes of any other range.
template <detail::iterable Range>
class from_forward_source : public opens_as_plan<from_forward_source<Range>> {
  using iterator = decltype(std::begin(std::declval<Range&>()));
  using sentinel = decltype(std::end(std::declval<Range&>()));
  // A range that caches its beginning (a filter view) must not be shared by two readers; a copy of a view is
  // cheap.
  static constexpr bool copied =
      !detail::iterable<const Range> && std::forward_iterator<iterator> && std::copyable<Range>;
  static constexpr bool single_use =
      !copied && !(detail::iterable<const Range> && std::forward_iterator<iterator>);

  struct shared_range {
    explicit shared_range(Range r) : range(std::move(r)) {}
    Range range;
    std::atomic<bool> taken{false};
  };

 public:
  using penstock_part = source_tag;
  using element = std::iter_value_t<iterator>;
  static constexpr std::string_view source_name = "from";

  class reader {
   public:
    explicit reader(shared<shared_range> range) : range_(std::move(range)) {}

    [[nodiscard]] bool next(element& e) {
      if (!cursor_)
        begin();
      else if (cursor_->at != cursor_->end)
        ++cursor_->at;
      if (!(cursor_->at != cursor_->end)) return false;
      e = *cursor_->at;
      return true;
    }
    void rewind(std::uint64_t) {
      if (!cursor_) return;
      if constexpr (single_use)
        read_twice();
      else
        cursor_.reset();
    }

   private:
    struct cursor {
      iterator at;
      sentinel end;
    };
    [[noreturn]] static void read_twice() {
      throw error(errc::state,
                  "from: this range can be read only once; collect it into a vector to read it again");
    }
    void begin() {
      if constexpr (single_use)
        if (range_->taken.exchange(true)) read_twice();
      cursor_.emplace(cursor{std::begin(range_->range), std::end(range_->range)});
    }

    shared<shared_range> range_;
    std::optional<cursor> cursor_;
  };

  explicit from_forward_source(Range range) : range_(new shared_range(std::move(range))) {}

  [[nodiscard]] std::string describe() const { return "from(a range that is read forward)"; }
  /// Equal for all ranges: their contents are not known until they are read.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return mix64(0x66726f6d); }
  [[nodiscard]] reader connect() const {
    if constexpr (copied)
      return reader(shared<shared_range>(new shared_range(range_->range)));
    else
      return reader(range_);
  }

 private:
  shared<shared_range> range_;
};

/// The function object behind `from`.
struct from_fn {
  template <class Range>
  [[nodiscard]] auto operator()(Range range) const {
    if constexpr (detail::names_a_file<Range>) {
      static_assert(never<Range>,
                    "penstock: from(range) is a dataset in memory, and this is a text; write lines(path) for "
                    "the lines of a file, webdataset(path) for tar files, or from(std::vector{...})");
      return ill_formed{};
    } else if constexpr (detail::sized_random_access<Range>) {
      return from_source<Range>(std::move(range));
    } else if constexpr (detail::iterable<Range>) {
      using element = typename from_forward_source<Range>::element;
      if constexpr (std::default_initializable<element> && std::movable<element>) {
        return from_forward_source<Range>(std::move(range));
      } else {
        static_assert(std::default_initializable<element> && std::movable<element>,
                      "penstock: from(range): a range that is read forward needs elements that are movable "
                      "and default-constructible");
        return from_source<std::vector<Range>>({});
      }
    } else {
      static_assert(detail::iterable<Range>,
                    "penstock: from(range): this is not a range; give it a vector, a std::span or anything "
                    "with begin and end");
      return from_source<std::vector<Range>>({});
    }
  }
  template <class T>
  [[nodiscard]] from_source<std::vector<T>> operator()(std::initializer_list<T> values) const {
    return from_source<std::vector<T>>(std::vector<T>(values));
  }
};

/// A dataset in memory, or one produced by an iterator.
///
/// In: a range, which is moved (or copied, if the caller keeps it) into the plan and shared by its copies; a
/// `std::span` or a view only borrows, and the data it refers to must outlive all plans and runs. Out: an
/// indexed source for a random-access range of known size, a forward-only one for any other range. Samples of
/// class type are delivered as `const T&`, small plain ones by value; texts and vectors of bytes are byte
/// elements, which `decode` accepts.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. A forward-only source is
/// deterministic only.
/// Cost per sample: none when indexed; a copy when forward. No allocation other than those made by copying a
/// sample.
/// Threads: an indexed range is read by all workers at once, as const; a forward one by one thread at a time.
/// `open(...)` returns a run over the samples one by one, as `open` of a plan does.
/// Throws `errc::state` if a range that can be read only once is read again.
///
///     auto words = from(std::vector<std::string>{"one", "two"});
///     auto borrowed = from(std::span<const float>(values));
///     for (const std::string& word : words.open()) std::puts(word.c_str());  // a run, as from a plan
inline constexpr from_fn from{};

}  // namespace penstock::inline v0_1
