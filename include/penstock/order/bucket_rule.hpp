// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/bucket_cut.hpp>

namespace penstock::inline v0_1 {

/// What puts sizes of a type into buckets, as `aspect_buckets` those of images: 1 to 255 of them.
///   size()         how many there are
///   bucket_of(s)   the bucket of a size
///   length(k)      what a sample of bucket k counts as, against `max_tokens`
///   describe()     for people and for states
///   fingerprint(h) calls `h.add(...)` with everything that determines the buckets
template <class B, class Size>
concept bucketing = std::copy_constructible<B> && requires(const B& b, const Size& size, std::uint64_t k) {
  { b.size() } -> std::convertible_to<std::uint64_t>;
  { b.bucket_of(size) } -> std::convertible_to<std::uint64_t>;
  { b.length(k) } -> std::convertible_to<std::uint64_t>;
  { b.describe() } -> std::convertible_to<std::string>;
};

namespace detail {

/// The bucket of a sample from its length. Edges that are not given are found once, from the lengths: all of
/// them if they are values, otherwise those of 2^20 samples, evenly spaced.
template <class Length>
class length_keys {
 public:
  length_keys(costs<Length> lengths, bucket_edges edges)
      : lengths_(std::move(lengths)), edges_(std::move(edges)) {}

  [[nodiscard]] std::uint64_t key(std::uint64_t sample) const { return lengths_(sample); }
  [[nodiscard]] static std::uint64_t length(std::uint64_t key) noexcept { return key; }
  /// Throws `pass_stopped` if `stop` becomes true while it looks at the lengths.
  template <class Orders>
  [[nodiscard]] std::shared_ptr<const bucket_table> table(const Orders& orders, std::uint64_t samples,
                                                          const std::atomic<bool>* stop) const {
    return found_.get(0, [&] {
      return bucket_table(edges_.wanted() == 0 ? edges_.edges() : edges_of(orders, samples, stop));
    });
  }

  void check(const cut_input& in) const { lengths_.check(in, "bucket_by"); }
  [[nodiscard]] std::string describe() const {
    const std::string lengths = lengths_.describe();
    return lengths + (lengths.empty() ? "" : ", ") + edges_.describe();
  }
  void fingerprint(auto& h) const {
    h.add("lengths", edges_.wanted(), edges_.with_least_padding(), edges_.edges().size());
    for (const std::uint64_t edge : edges_.edges()) h.add(edge);
    lengths_.fingerprint(h);
  }

 private:
  template <class Orders>
  [[nodiscard]] std::vector<std::uint64_t> edges_of(const Orders& orders, std::uint64_t samples,
                                                    const std::atomic<bool>* stop) const {
    constexpr std::uint64_t looks = std::uint64_t{1} << 20, piece = 4096;
    length_counts counts;
    const auto look = [&](std::uint64_t sample, position at) {
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw pass_stopped{};
      try {
        counts.add(key(sample));
      } catch (error& e) {
        rethrow_length(e, at, sample);
      }
    };
    const std::uint64_t n = orders.size();
    const std::uint64_t each = sample_values<Length> || n <= looks ? 1 : (n + looks - 1) / looks;
    // Every sample once, in whatever order: then in that of the source.
    if (!Orders::repeats && !Orders::changes_epoch && n == samples) {
      for (std::uint64_t i = 0; i < n; i += each) look(i, {0, i});
      return counts.edges(edges_);
    }
    typename Orders::binding bound;
    for (std::uint64_t first = 0; first < n; first += piece * each) {
      const std::uint64_t end = std::min(n, first + piece * each);
      orders.rebind(bound, 0, first, end);
      for (std::uint64_t i = first; i < end; i += each) look(bound(i).index, {0, i});
    }
    return counts.edges(edges_);
  }

  costs<Length> lengths_;
  bucket_edges edges_;
  epoch_tables<bucket_table> found_;
};

/// The bucket of a sample from its size, by a `bucketing`.
template <class Sizes, class Buckets>
class size_keys {
 public:
  size_keys(costs<Sizes> sizes, Buckets buckets)
      : sizes_(std::move(sizes)), table_(new const buckets_of_sizes{std::move(buckets)}) {}

  [[nodiscard]] std::uint64_t key(std::uint64_t sample) const {
    const std::uint64_t bucket = table_->made.bucket_of(sizes_(sample));
    if (bucket < table_->made.size()) return bucket;
    throw error(errc::argument, {"bucket ", bucket, " of ", table_->made.size(), " does not exist"});
  }
  [[nodiscard]] std::uint64_t length(std::uint64_t key) const { return table_->made.length(key); }
  [[nodiscard]] const auto& table(const auto& /*orders*/, std::uint64_t /*samples*/,
                                  const std::atomic<bool>* /*stop*/) const {
    return table_;
  }

  void check(const cut_input& in) const {
    (void)bucket_edges(table_->made.size());
    sizes_.check(in, "bucket_by");
  }
  [[nodiscard]] std::string describe() const {
    const std::string sizes = sizes_.describe();
    return sizes + (sizes.empty() ? "" : ", ") + table_->made.describe();
  }
  void fingerprint(auto& h) const {
    table_->made.fingerprint(h);
    sizes_.fingerprint(h);
  }

 private:
  struct buckets_of_sizes {
    Buckets made;

    [[nodiscard]] std::uint64_t buckets() const { return made.size(); }
    [[nodiscard]] static std::uint8_t bucket(std::uint64_t key) noexcept {
      return static_cast<std::uint8_t>(key);
    }
  };

  costs<Sizes> sizes_;
  std::shared_ptr<const buckets_of_sizes> table_;
};

}  // namespace detail

/// The rule of `bucket_by`, or, with limits over all ranks, of `global_bucket_by`; makes a `bucket_cut`.
template <class Keys, bool Global = false>
struct bucket_rule {
  static constexpr bool global = Global;

  Keys keys;
  bucket_options options;
  tail at_end = tail::keep;
  std::uint64_t multiple = 1;  ///< of which padded lengths are one

  template <class Orders>
  [[nodiscard]] bucket_cut<Orders, Keys> make(const Orders& orders, const cut_input& in) const {
    keys.check(in);
    return {orders, keys, {options, multiple}, global, at_end, in};
  }
  [[nodiscard]] std::string describe() const {
    std::string words = global ? "global_bucket_by(" : "bucket_by(";
    words += keys.describe();
    const auto limit = [&](std::string_view name, std::uint64_t number) {
      if (number != 0) words += detail::text({", ", name, " ", number});
    };
    limit("max_tokens", options.max_tokens.fixed());
    if (options.max_tokens.changes()) words += ", max_tokens by step";
    limit("max_samples", options.max_samples);
    limit("quadratic", options.quadratic);
    limit("padding to multiples of", multiple == 1 ? 0 : multiple);
    return words + detail::text({", tail ", to_string(at_end), ")"});
  }
  void fingerprint(auto& h) const {
    h.add("buckets", at_end, global, multiple, options.max_tokens.fixed(), options.max_samples,
          options.quadratic, options.window, options.seed.has_value(), options.seed.value_or(0));
    keys.fingerprint(h);
  }
};

}  // namespace penstock::inline v0_1
