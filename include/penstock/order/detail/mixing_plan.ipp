// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/mixing_plan.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1::detail {

[[nodiscard]] inline error mix_error(std::initializer_list<piece> message) {
  return error(errc::argument, message).in_stage("mix");
}

/// Converts weights to whole numbers whose sum is at most 2^60. Exact if all are decimal fractions of up to
/// 15 digits and the sum of the whole numbers fits; otherwise rounded to 2^-50 of the largest, or finer. Uses
/// only operations that every machine rounds identically. `place` tells messages which weights they are: " at
/// knot 2".
[[nodiscard]] inline std::vector<std::uint64_t> whole_weights(const std::vector<double>& values,
                                                              bool zero_too, std::string_view place = {}) {
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double w = values[i];
    if (std::isnan(w)) throw mix_error({"the weight of source ", i, place, " is not a number"});
    if (w < 0 || std::isinf(w))
      throw mix_error(
          {"the weight of source ", i, place, " is ", number_text(w), "; weights are finite, above 0"});
    if (w == 0 && !zero_too) {
      throw mix_error({"the weight of source ", i,
                       " is 0; leave the source out, or let it come in later with a "
                       "weight_schedule"});
    }
    largest = std::max(largest, w);
  }
  if (largest == 0)
    throw mix_error({"all weights", place, " are 0; give at least one source a weight above 0"});
  constexpr double fits = 0x1p52;
  double ten = 1;
  for (int digits = 0; digits <= 15 && largest * ten <= fits; ++digits, ten *= 10) {
    std::vector<std::uint64_t> whole;
    for (const double w : values) {
      const double scaled = std::nearbyint(w * ten);
      if (scaled / ten != w) break;
      whole.push_back(static_cast<std::uint64_t>(scaled));
    }
    if (whole.size() == values.size() && values.size() <= 256) return whole;
  }
  int exponent = 0;
  std::frexp(largest, &exponent);
  const int room = 59 - static_cast<int>(std::bit_width(values.size()));
  std::vector<std::uint64_t> whole;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double scaled = std::nearbyint(std::ldexp(values[i], room - exponent));
    if (scaled == 0 && values[i] != 0)
      throw mix_error({"the weight of source ", i, place, ", ", number_text(values[i]),
                       ", is too small compared with ", number_text(largest)});
    whole.push_back(static_cast<std::uint64_t>(scaled));
  }
  return whole;
}

PENSTOCK_INLINE weight_integrals::weight_integrals(std::uint64_t unit, std::vector<std::uint64_t> knots,
                                                   std::vector<std::uint64_t> values)
    : unit_(unit), knots_(std::move(knots)), values_(std::move(values)) {
  functions_ = values_.size() / knots_.size();
  before_.resize(values_.size());
  for (std::size_t i = functions_; i < values_.size(); ++i) {
    const std::size_t knot = i / functions_;
    before_[i] = before_[i - functions_] +
                 product(values_[i - functions_] + values_[i], knots_[knot] - knots_[knot - 1]);
  }
}

PENSTOCK_INLINE weight_integrals::result weight_integrals::at(std::size_t function, std::uint64_t p,
                                                              std::size_t knot) const noexcept {
  const std::size_t here = knot * functions_ + function;
  const std::uint64_t x = p - knots_[knot], value = values_[here];
  wide sum = before_[here] + product(2 * value, x);
  bool exact = true;
  if (knot + 1 != knots_.size() && values_[here + functions_] != value) {
    const std::uint64_t next = values_[here + functions_], length = knots_[knot + 1] - knots_[knot];
    // slope x^2 / length = (q + r / length) x, split so that each part fits
    const auto [q, r] = divide(product(next > value ? next - value : value - next, x), length);
    const auto rest = divide(product(r, x), length);
    exact = rest.remainder == 0;
    const wide bend = product(q, x) + wide{0, rest.quotient};
    sum = next > value ? sum + bend : sum - bend - wide{0, exact ? 0u : 1u};
  }
  const auto whole = divide(sum, 2 * unit_);
  return {whole.quotient, exact && whole.remainder == 0};
}

PENSTOCK_INLINE std::string mixing_rule::describe() const {
  const auto list = [](const auto& numbers) {
    std::string line = "{";
    for (const auto n : numbers) {
      if (line.size() != 1) line += ", ";
      if constexpr (std::is_floating_point_v<decltype(n)>)
        line += number_text(n);
      else
        append(line, {n});
    }
    return line + "}";
  };
  std::string line(name());
  if (what == kind::choose) return line + list(counts);
  if (what != kind::schedule) return line + list(values);
  line += "{";
  for (const weight_knot& knot : knots)
    append(line, {(&knot == knots.data() ? "{" : ", {"), knot.sample, ", ", list(knot.weights), "}"});
  return line + "}";
}

PENSTOCK_INLINE std::string mixing_options::describe() const {
  constexpr std::string_view names[] = {"first_exhausted", "all_exhausted", "cycle"};
  std::string line;
  if (stop) append(line, {", ", names[static_cast<std::size_t>(*stop)]});
  if (samples) append(line, {", samples_per_epoch(", *samples, ")"});
  if (seed != 0) append(line, {", seed(", seed, ")"});
  return line;
}

PENSTOCK_INLINE mixing_plan::mixing_plan(std::vector<std::uint64_t> sizes_of_sources, const mixing_rule& rule,
                                         const mixing_options& options)
    : sizes(std::move(sizes_of_sources)) {
  check_sizes(rule);
  check_options(rule, options);
  if (rule.what == mixing_rule::kind::weights)
    constant(whole_weights(rule.values, false));
  else if (rule.what == mixing_rule::kind::schedule)
    scheduled(rule.knots);
  else
    counted(rule, options);
  if (advance.empty())
    ending(rule, options);
  else
    order_sources(none);
}

PENSTOCK_INLINE void mixing_plan::check_sizes(const mixing_rule& rule) const {
  const auto check = [this, &rule](std::size_t given, const char* what) {
    if (given != sizes.size())
      throw mix_error({rule.name(), what, given, " numbers, but there are ", sizes.size(), " sources"});
  };
  if (sizes.empty()) throw mix_error({"the mixture has no sources; give at least one"});
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] == 0) throw mix_error({"source ", k, " has no samples; leave it out"});
    if (sizes[k] >= maximum / 2)
      throw mix_error(
          {"source ", k, " is endless; mix repeats sources by itself, write no repeat() in them"});
  }
  if (rule.what == mixing_rule::kind::schedule) {
    if (rule.knots.empty()) throw mix_error({"the weight_schedule has no knots; give at least one"});
    for (const weight_knot& knot : rule.knots) check(knot.weights.size(), ": a knot has ");
  } else {
    check(rule.what == mixing_rule::kind::choose ? rule.counts.size() : rule.values.size(), " has ");
  }
}

PENSTOCK_INLINE void mixing_plan::check_options(const mixing_rule& rule, const mixing_options& options) {
  const bool lasting = rule.what == mixing_rule::kind::weights || rule.what == mixing_rule::kind::schedule;
  if (!lasting && options.stop)
    throw mix_error({rule.name(), " already says where an epoch ends; use a stopping policy with weights"});
  if (options.samples && (rule.what == mixing_rule::kind::repeats || rule.what == mixing_rule::kind::choose))
    throw mix_error({rule.name(),
                     " already says how long an epoch is; use samples_per_epoch with weights or "
                     "proportions"});
  if (options.samples && options.stop && *options.stop != stopping::cycle)
    throw mix_error({"samples_per_epoch and the stopping policy both say where an epoch ends; write one"});
  if (options.samples && (*options.samples == 0 || *options.samples > maximum / 2))
    throw mix_error({"samples_per_epoch(", *options.samples, ") is not in [1, 2^62]"});
}

PENSTOCK_INLINE void mixing_plan::constant(std::vector<std::uint64_t> whole) {
  std::uint64_t sum = 0;
  for (const std::uint64_t w : whole) sum += w;
  own = weight_integrals(sum, {0}, std::move(whole));
}

PENSTOCK_INLINE void mixing_plan::scheduled(const std::vector<weight_knot>& knots) {
  std::vector<std::uint64_t> samples_at, values;
  for (std::size_t i = 0; i < knots.size(); ++i) {
    if (i != 0 && knots[i].sample <= knots[i - 1].sample)
      throw mix_error(
          {"knot ", i, " of the weight_schedule, at sample ", knots[i].sample,
           ", does not come after the one before it; for a step, write two knots one sample apart"});
    if (knots[i].sample >= maximum)
      throw mix_error({"knot ", i, " of the weight_schedule is beyond 2^63 samples"});
    const std::vector<std::uint64_t> whole = whole_weights(knots[i].weights, true, text({" at knot ", i}));
    std::uint64_t sum = 0, below = 0, done = 0;
    for (const std::uint64_t w : whole) sum += w;
    for (std::size_t copies = i == 0 && knots[i].sample != 0 ? 2 : 1; copies != 0; --copies) {
      samples_at.push_back(copies == 2 ? 0 : knots[i].sample);
      below = done = 0;
      for (std::size_t k = 0; k < whole.size(); ++k) {
        below += whole[k];
        const std::uint64_t up_to =
            below == sum ? schedule_unit : divide(product(below, schedule_unit), sum).quotient;
        if (up_to == done && whole[k] != 0)
          throw mix_error(
              {"the weight of source ", k, " at knot ", i, " is too small compared with the others"});
        values.push_back(up_to - done);
        done = up_to;
      }
    }
  }
  own = weight_integrals(schedule_unit, std::move(samples_at), std::move(values));
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (first_knot_with(k) == own.knots().size())
      throw mix_error({"the weight of source ", k, " is 0 at every knot; leave the source out"});
  }
}

PENSTOCK_INLINE void mixing_plan::counted(const mixing_rule& rule, const mixing_options& options) {
  std::vector<std::uint64_t> counts = rule.counts;
  if (rule.what == mixing_rule::kind::proportions) {
    const std::vector<std::uint64_t> whole = whole_weights(rule.values, false);
    std::uint64_t sum = 0, all = 0, below = 0, done = 0;
    for (const std::uint64_t size : sizes) add(all, size);
    all = options.samples.value_or(all);
    for (const std::uint64_t w : whole) sum += w;
    for (const std::uint64_t w : whole) {
      below += w;
      const std::uint64_t up_to = below == sum ? all : divide(product(all, below), sum).quotient;
      counts.push_back(up_to - done);
      done = up_to;
    }
  } else if (rule.what == mixing_rule::kind::repeats) {
    static_cast<void>(whole_weights(rule.values, false));  // only to check them
    for (std::size_t k = 0; k < sizes.size(); ++k) counts.push_back(times(rule.values[k], k));
  }
  samples = 0;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] == 0)
      throw mix_error(
          {rule.name(), " gives no sample of source ", k, "; leave the source out, or ask for more"});
    add(samples, counts[k]);
  }
  if (samples > schedule_unit) throw mix_error({"an epoch of ", samples, " samples is beyond 2^60"});
  advance = counts;
  own = weight_integrals(samples, {0}, std::move(counts));
}

PENSTOCK_INLINE std::uint64_t mixing_plan::times(double factor, std::size_t k) const {
  const double product_of = factor * static_cast<double>(sizes[k]);
  if (product_of > 0x1p60) throw mix_error({"repeats: source ", k, " would give more than 2^60 samples"});
  const double whole = std::nearbyint(factor);
  if (whole == factor) return static_cast<std::uint64_t>(whole) * sizes[k];
  return static_cast<std::uint64_t>(std::nearbyint(product_of));
}

PENSTOCK_INLINE void mixing_plan::add(std::uint64_t& sum, std::uint64_t more) {
  if (more > maximum / 2 - sum) throw mix_error({"an epoch of more than 2^62 samples"});
  sum += more;
}

PENSTOCK_INLINE void mixing_plan::ending(const mixing_rule& rule, const mixing_options& options) {
  const stopping stop = options.stop.value_or(options.samples ? stopping::cycle : stopping::first_exhausted);
  if (stop == stopping::cycle) {
    endless = true;
    samples = options.samples.value_or(maximum);
    advance.assign(sizes.size(), 0);
    return order_sources(none);
  }
  const bool first = stop == stopping::first_exhausted;
  // ends_by(n) for first_exhausted: some share is above its size; for all_exhausted: no share is below
  // its size
  const auto ends_by = [this, first](std::uint64_t n) {
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const auto share = own.at(k, n);
      if (first && share.ceil() > sizes[k]) return true;
      if (!first && share.floor < sizes[k]) return false;
    }
    return !first;
  };
  std::uint64_t low = 0, high = maximum / 2;  // the epoch reaches low and has ended by high
  if (!ends_by(high))
    throw mix_error({"with these ", rule.name(), " an epoch would have more than 2^62 samples",
                     (first ? "" : ", because all_exhausted needs the last sample of each source"),
                     "; write samples_per_epoch(n)"});
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (ends_by(middle) ? high : low) = middle;
  }
  samples = first ? low : high;
  if (samples == 0) throw mix_error({"an epoch would end before its first sample"});
  std::size_t limiting = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (first ? own.at(k, high).ceil() > sizes[k] : own.at(k, low).floor < sizes[k]) limiting = k;
  }
  order_sources(limiting, first);
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    // never goes past the end: a source in the middle may get one more or one less than its share
    const std::uint64_t rounds = first ? 1 : (own.at(k, samples).ceil() - 1) / sizes[k] + 1;
    advance.push_back(rounds * sizes[k]);
  }
}

PENSTOCK_INLINE std::size_t mixing_plan::first_knot_with(std::size_t k) const {
  std::size_t i = 0;
  while (i != own.knots().size() && own.values()[i * sizes.size() + k] == 0) ++i;
  return i;
}

PENSTOCK_INLINE unsigned mixing_plan::bits_needed(std::size_t k) const {
  const std::size_t begin = first_knot_with(k), functions = sizes.size();
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = begin; i < own.knots().size(); ++i)
    least = std::min(least, own.values()[i * functions + k]);
  if (least == 0) return needs_end;
  // The weight is at least that of a ramp to `least` over `ramp` samples, and `least` after the ramp.
  const std::uint64_t ramp = begin == 0 ? 0 : own.knots()[begin] - own.knots()[begin - 1];
  for (unsigned bits = least_bits; bits <= max_bits; ++bits) {
    const std::uint64_t block = std::uint64_t{1} << bits;
    const bool enough = block <= ramp ? !(product(least, block * block) < product(2 * ramp, own.unit()))
                                      : !(product(least, 2 * block - ramp) < product(2, own.unit()));
    if (enough) return bits;
  }
  return max_bits + 1;
}

PENSTOCK_INLINE void mixing_plan::order_sources(std::size_t limiting, bool at_the_end) {
  const std::size_t count = sizes.size();
  std::vector<unsigned> needed(count);
  for (std::size_t k = 0; k < count; ++k) needed[k] = bits_needed(k);
  std::vector<std::uint32_t> by_need(count);
  for (std::size_t k = 0; k < count; ++k) by_need[k] = static_cast<std::uint32_t>(k);
  const auto rank = [&](std::size_t k) {
    return needed[k] == needs_end ? 66u : k == limiting ? 65u : needed[k];
  };
  std::stable_sort(by_need.begin(), by_need.end(), [&](auto a, auto b) { return rank(a) > rank(b); });
  order = by_need;
  if (count > 1) {
    // by_need[0] and [1] go to the ends; the limiting source to the end that it needs
    const bool swapped = (limiting == by_need[0]) == at_the_end;
    std::swap(order[1], order[count - 1]);
    if (swapped) std::swap(order.front(), order.back());
  }
  for (std::size_t i = 1; i + 1 < count; ++i) check_middle(order[i], needed[order[i]]);
  std::vector<std::uint64_t> values;
  for (std::size_t knot = 0; knot < own.knots().size(); ++knot) {
    std::uint64_t sum = 0;
    values.push_back(0);
    for (const std::uint32_t k : order) values.push_back(sum += own.values()[knot * count + k]);
  }
  cumulated = weight_integrals(own.unit(), own.knots(), std::move(values));
}

PENSTOCK_INLINE void mixing_plan::check_middle(std::uint32_t k, unsigned needed) {
  if (needed == needs_end) {
    throw mix_error({"the weight of source ", k,
                     " returns to 0, and so do those of two others; let at most "
                     "two do so, and give the others a small weight there, such as 0.000001"});
  }
  if (needed > max_bits && (endless || samples >> max_bits > 1)) {
    throw mix_error({"the weight of source ", k,
                     " is so small that it gives less than one in 2^31 samples, and "
                     "two others are as small; give it a larger one"});
  }
  block_bits = std::max(block_bits, std::min(needed, max_bits + 1));
}

}  // namespace penstock::inline v0_1::detail
