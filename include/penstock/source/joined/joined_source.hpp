// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/joined/joined_plans.hpp>
#include <penstock/storage/session_report.hpp>

/// The base of `mix`, `zip` and `concat`, and of their readers.
namespace penstock::inline v0_1::detail {

/// A sample of one of the plans.
struct joined_place {
  std::size_t source;
  position at;
};
/// Of joints that find any position as fast as the next.
struct no_cursor {};

/// Reads the samples of a joint. `Places` is what each joint has of its own:
///
///   Places(plans, ...)      of all plans
///   size(), starts()        the samples of an epoch, and its shards
///   cursor                  what one thread keeps for the next position
///   at(position, cursor&)   the plan, `source`, and the position in it, `at`, of the sample there
///   share(k)                the samples of plan k in the joint's first `whole()`
template <class Plans, class Places>
class joined_reader {
  using inner = typename Plans::readers;

 public:
  using plans_type = Plans;
  using places_type = Places;
  static constexpr reader_traits traits = Plans::traits;
  struct worker : inner::worker {
    [[no_unique_address]] typename Places::cursor place;
  };
  struct scout : inner::scout {
    [[no_unique_address]] typename Places::cursor place;
  };

  /// `used`: the fields used of every plan's samples, or an array with those of each.
  template <class Used>
  joined_reader(const Plans& plans, const Places& places, std::string_view joint, const Used& used)
      : readers_(plans, joint, used), places_(places) {}

  template <class Sink>
  void evaluate(position p, worker& w, Sink&& sink) const {
    const auto found = places_.at(p, w.place);
    readers_.with(found.source, w, [&](const auto& reader, auto& own) {
      own.fetched = w.fetched;
      reader.evaluate(found.at, own, sink);
    });
  }
  [[nodiscard]] std::string key(position p) const {
    return ask(p, [](const auto& reader, position own) { return key_of(reader, own); });
  }
  [[nodiscard]] std::string url(position p) const {
    return ask(p, [](const auto& reader, position own) { return url_of(reader, own); });
  }
  /// The ranges that the sample's source reports.
  template <class Sink>
    requires Plans::wants_hints
  void ranges(position p, scout& s, Sink&& sink) const {
    const auto found = places_.at(p, s.place);
    readers_.with(found.source, s,
                  [&](const auto& reader, auto& own) { reader.ranges(found.at, own, sink); });
  }
  void cancel_reads() const noexcept {
    readers_.each([](std::size_t, const auto& one) { cancel_reads_of(one.reader()); });
  }
  /// What all plans keep in memory.
  [[nodiscard]] kept_counters kept() const {
    return sum<kept_counters>([](const auto& one) { return one.kept(); });
  }
  /// What the sessions of all plans counted.
  [[nodiscard]] session_report report() const {
    return sum<session_report>([](const auto& one) { return report_of(one.reader()); });
  }
  [[nodiscard]] std::uint64_t bytes_per_sample() const {
    const std::uint64_t whole = places_.whole();
    double bytes = 0;
    readers_.each([&](std::size_t k, const auto& one) {
      bytes += static_cast<double>(bytes_per_sample_of(one.reader())) * static_cast<double>(places_.share(k));
    });
    return whole == 0 ? 0 : static_cast<std::uint64_t>(bytes / static_cast<double>(whole));
  }

 protected:
  inner readers_;

 private:
  /// What f(reader, position) says of a sample: of its source, and there.
  template <class F>
  [[nodiscard]] std::string ask(position p, F&& f) const {
    typename Places::cursor place;
    const auto found = places_.at(p, place);
    std::string said;
    readers_.with(found.source, [&](const auto& one) { said = one.ask(found.at, f); });
    return said;
  }
  /// f(reader of a plan) of all plans together.
  template <class T, class F>
  [[nodiscard]] T sum(F&& f) const {
    T all{};
    readers_.each([&](std::size_t, const auto& one) { all += f(one); });
    return all;
  }

  Places places_;
};

/// The base of the sources; `Reader` is a joined_reader, or derives from one.
template <class Source, class Reader>
class joined_source : public opens_as_plan<Source> {
  using plans_type = typename Reader::plans_type;
  using places_type = typename Reader::places_type;

 public:
  using penstock_part = source_tag;
  using element = typename plans_type::element;
  using reader = Reader;
  static constexpr bool renumbers = plans_type::renumbers;
  static constexpr bool one_at_a_time = plans_type::one_at_a_time;
  static constexpr bool varies_by_epoch = plans_type::varies;
  static consteval guarantee_set loses(place) { return plans_type::lost; }

  [[nodiscard]] std::uint64_t size() const noexcept { return places_.size(); }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return places_.starts(); }
  [[nodiscard]] std::string describe() const { return describe_with(""); }
  /// Covers the data of all sources.
  [[nodiscard]] std::uint64_t fingerprint() const {
    penstock::fingerprint h;
    h.add(Source::source_name);
    plans_.each([&h](std::size_t, const auto& p) { h.add(p.source().fingerprint()); });
    return h.value();
  }
  /// Covers the orders and seeds of all sources: a state is refused if any of them differs.
  [[nodiscard]] std::uint64_t sequence_fingerprint() const {
    penstock::fingerprint h;
    plans_.each([&h](std::size_t, const auto& p) { h.add(penstock::sequence_fingerprint(p)); });
    return h.value();
  }
  /// Covers the random stages of all sources.
  [[nodiscard]] std::uint64_t random_fingerprint() const {
    penstock::fingerprint h;
    bool any = false;
    plans_.each([&](std::size_t, const auto& p) {
      const std::uint64_t one = penstock::random_fingerprint(p);
      any = any || one != 0;
      h.add(one);
    });
    return any ? h.value() : 0;
  }
  [[nodiscard]] reader connect(const projection& used = {}) const {
    return {plans_, places_, Source::source_name, used};
  }

 protected:
  template <class... Args>
  explicit joined_source(plans_type plans, const Args&... args)
      : plans_(std::move(plans)), places_(plans_, args...) {}

  /// "concat(from(3 samples in memory), ...)".
  [[nodiscard]] std::string describe_with(std::string_view with) const {
    std::string line = text({Source::source_name, "(", with});
    plans_.each([&](std::size_t k, const auto& p) {
      append(line, {(k == 0 && with.empty() ? "" : ", "), p.source().describe()});
      p.stages().apply([&line](const auto&... stages) {
        (append(line, {" | ", text_of_stage(stages)}), ...);
      });
    });
    return line + ")";
  }
  [[nodiscard]] const places_type& places() const noexcept { return places_; }

 private:
  plans_type plans_;
  places_type places_;
};

}  // namespace penstock::inline v0_1::detail
