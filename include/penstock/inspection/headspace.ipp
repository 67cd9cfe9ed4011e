// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/headspace.hpp>

#include <penstock/core/message.hpp>
#include <penstock/run/engine/tuning/machine.hpp>

#include <algorithm>
#include <cstdio>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE void refuse_headspace(std::string_view why) {
  throw error(errc::argument, {"headspace: ", why});
}

PENSTOCK_INLINE headspace_limits limits_of_turns(const headspace_options& options, unsigned legs) {
  constexpr unsigned max_turns = 1000;  // each takes a step, whatever `within` says
  if (options.batches == 0 || options.turns == 0 || options.turns > max_turns)
    refuse_headspace("batches must be at least 1, and turns 1 to 1000");
  if (options.within.count() <= 0 || options.at_least.count() < 0)
    refuse_headspace("within must be a time above 0, and at_least not below 0");
  return {options.batches, options.at_least, options.within / (std::int64_t{legs} * options.turns),
          options.stop};
}

PENSTOCK_INLINE double processors_for(const run_options& options) {
  const processor_set mine = processors_of_this_thread();
  unsigned more = 0;
  for (unsigned i = 0; i < processor_set::max_processors; ++i)
    more += options.threads.processors.contains(i) && !mine.contains(i) ? 1 : 0;
  return usable_processors() + more;
}

/// What a leg would take if its threads, at least so many, never waited for a processor, as they do for other
/// programs.
PENSTOCK_INLINE double undisturbed(const headspace_leg& leg, unsigned threads) {
  headspace_leg quiet;
  for (std::size_t i = 0; i < leg.turns.size(); ++i) {
    const double all = leg.turns[i];
    const processor_use use = i < leg.uses.size() ? leg.uses[i] : leg.use_of_step();
    const double active = all > 0 ? (use.used + use.waited) / all : 0;
    const double waited = use.waited / std::max({1.0, active, static_cast<double>(threads)});
    quiet.turns.push_back(std::max(0.0, all - waited));
  }
  return quiet.seconds();
}

/// Whether the step and the workers want more processors than they may use.
PENSTOCK_INLINE bool is_starved(const headspace_legs& legs) {
  const double real = legs.real.seconds(), slower = std::max(legs.cached.seconds(), legs.loader.seconds());
  const processor_use step = legs.cached.use_of_step(), load = legs.loader.use_of_step();
  const unsigned workers = legs.loader.counters.workers;
  if (workers == 0) return false;
  // Side by side, both have more to compute than the processors can while the slower one runs alone; and they
  // do take longer, or what else runs on the machine hides that.
  const bool too_much =
      step.used + load.used >
      1.25 * legs.processors * std::max(undisturbed(legs.cached, 1), undisturbed(legs.loader, workers));
  const bool disturbed = real > 1.25 * slower || step.waited + load.waited > step.used + load.used;
  // The workers alone are too many.
  const bool crowded = workers > legs.processors && legs.loader.seconds() > legs.cached.seconds() &&
                       load.used + load.waited > 1.3 * legs.processors * legs.loader.seconds();
  return (too_much && disturbed) || crowded;
}

/// Divides what stages [from, to) save together among them, as their work is.
PENSTOCK_INLINE void divide_saving(std::vector<headspace_stage>& stages, std::size_t from, std::size_t to,
                                   double saved, bool measured) {
  to = std::min(to, stages.size());
  double busy = 0;
  for (std::size_t i = from; i < to; ++i) busy += stages[i].busy;
  for (std::size_t i = from; i < to; ++i) {
    const double part = busy > 0 ? stages[i].busy / busy : 1 / static_cast<double>(to - from);
    stages[i].saved = std::max(0.0, saved) * part;
    stages[i].measured = measured && to - from == 1;
  }
}

PENSTOCK_INLINE std::vector<headspace_stage> stages_of(const headspace_legs& legs) {
  std::vector<headspace_stage> all;
  const run_counters& c = legs.loader.counters;
  for (std::size_t i = 0; i < c.stages.size(); ++i)
    all.push_back({c.stages[i].name, legs.loader.busy_of_step(i)});
  const auto quiet = [&](const headspace_leg& leg) { return undisturbed(leg, c.workers); };
  const double whole = quiet(legs.loader), scale = whole > 0 ? legs.loader.seconds() / whole : 1;
  double left = whole;  // a batch takes without the stages so far
  std::size_t done = 0;
  const auto without = [&](const headspace_leg& leg, std::size_t stages) {
    if (leg.turns.empty()) return;
    divide_saving(all, done, stages, left - quiet(leg), true);
    left = std::min(left, quiet(leg));
    done = stages;
  };
  without(legs.first, legs.first_stages);
  without(legs.last, legs.last_stages);
  // The other stages share what is left, if the workers were at work then.
  double busy = 0;
  for (std::size_t i = done; i < all.size(); ++i) busy += all[i].busy;
  const double threads = std::max(1u, c.workers);
  divide_saving(all, done, all.size(), std::min(left, busy / threads), false);
  if (!legs.on_host.turns.empty())
    all.push_back({legs.copy, 0, std::max(0.0, whole - quiet(legs.on_host)), true});
  for (headspace_stage& one : all) one.saved *= scale;
  return all;
}

PENSTOCK_INLINE std::string advice_of_stage(bottleneck limit, const std::string& name, bool has_workers) {
  if (limit == bottleneck::copy)
    return "the copy '" + name +
           "' holds the loop back: copy fewer bytes, as 8-bit images that on_device makes "
           "into numbers";
  const std::string stage = "'" + name + "' holds the loop back: ";
  if (!has_workers) return stage + "give it threads with workers(n)";
  if (limit == bottleneck::io)
    return stage +
           "try prefetch(n), a faster disk, a cache, keep_in_memory, more workers, or fewer bytes per "
           "sample";
  return stage +
         "give it more workers if there are processors, make it cheaper, keep what it makes with "
         "keep_in_memory, or do it once when the data are packed";
}

/// What holds the loop back, once it is known that it waits.
PENSTOCK_INLINE verdict blame(const headspace_legs& legs, const std::vector<headspace_stage>& stages) {
  const run_counters& c = legs.loader.counters;
  verdict v = judge(legs.real.counters);
  if (is_starved(legs)) {
    v.limit = bottleneck::starved;
    v.advice =
        "the threads of the step and the workers want more processors than there are (" +
        std::to_string(static_cast<unsigned>(legs.processors)) +
        "): give the process more of them, or do less: a step with fewer threads, cheaper stages, work "
        "that is done once when the data are packed";
    return v;
  }
  if (v.limit == bottleneck::jitter) return v;
  std::size_t dearest = 0;
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (stages[i].saved > stages[dearest].saved) dearest = i;
  if (c.waiting_for_input > c.worker_busy_seconds + c.waiting_for_room || stages.empty() ||
      stages[dearest].saved < 0.05 * legs.loader.seconds()) {
    const verdict alone = judge(c);
    if (v.limit == bottleneck::consumer || v.limit == bottleneck::unknown) v = alone;
    return v;
  }
  v.limit = dearest >= c.stages.size()           ? bottleneck::copy
            : dearest == 0 && !c.source_computes ? bottleneck::io
                                                 : bottleneck::cpu;
  v.busiest = stages[dearest].name;
  v.advice = advice_of_stage(v.limit, v.busiest, c.workers != 0);
  return v;
}

PENSTOCK_INLINE headspace_report judge_headspace(const headspace_legs& legs) {
  headspace_report found;
  found.stopped = legs.stopped;
  found.real = legs.real.seconds();
  found.cached = legs.cached.seconds();
  found.loader = legs.loader.seconds();
  found.steps = legs.real.steps;
  if (legs.real.turns.empty() || legs.cached.turns.empty() || legs.loader.turns.empty()) {
    found.why.advice = "it was stopped before each loop had a turn; give it more time";
    return found;
  }
  const auto [low, high] = std::minmax_element(legs.real.turns.begin(), legs.real.turns.end());
  found.spread = (*high - *low) / std::max(found.real, 1e-12);
  found.stages = stages_of(legs);
  // A loop that hardly waits, and takes longer, was disturbed by something else; without counted waits the
  // thread of the loop itself puts batches together.
  const bool waits = legs.real.counters.stall() >= 0.05 || legs.loop_gathers;
  if ((found.share() < 0.05 || !waits) && !is_starved(legs)) {
    found.why = judge(legs.real.counters);
    found.why.limit = bottleneck::consumer;
    found.why.advice = "the time is in the training step: a faster loader would gain next to nothing";
  } else {
    found.why = blame(legs, found.stages);
  }
  return found;
}

}  // namespace detail

PENSTOCK_INLINE std::string headspace_report::text() const {
  if (real <= 0 || cached <= 0 || loader <= 0) return "Nothing was measured: " + why.advice + ".";
  std::string all =
      "A step takes " + detail::in_seconds(real) + " with the loader and " + detail::in_seconds(cached) +
      " with a batch that is there already: loading costs " + detail::percent(share()) +
      " of the time, and with any other loader the loop would be at most " + detail::as_fast(max_gain()) +
      ". The loader alone needs " + detail::in_seconds(loader) + " a batch.";
  std::string listed;
  for (const headspace_stage& one : stages) {
    if (one.saved < 0.01 * loader) continue;
    listed += (listed.empty() ? " Without '" : ", without '") + one.name + "' it would need " +
              (one.measured ? "" : "about ") + detail::in_seconds(one.saved) + " less";
  }
  if (!listed.empty()) all += listed + ".";
  all += " It is " + std::string(to_string(why.limit)) + ": " + why.advice + ".";
  if (spread > 0.2)
    all += " The turns of the loop differed by " + detail::percent(spread) +
           ": measure longer, or when the machine is quiet.";
  if (stopped) all += " It was stopped early.";
  return all;
}

PENSTOCK_INLINE std::string headspace_report::svg() const {
  constexpr unsigned left = 250, width = 380, row = 30;
  constexpr std::size_t longest_name = 28;
  constexpr const char* price = "#d9822b";
  constexpr const char* rest = "#5b8db8";
  constexpr const char* ink = "#7d8590";  // on light and on dark
  const auto escaped = [](std::string_view given) {
    std::string made;
    for (const char c : given.substr(0, longest_name)) {
      if (c == '<' || c == '>' || c == '&')
        made += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
      else
        made += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? '?' : c;
    }
    return made + (given.size() > longest_name ? "..." : "");
  };
  std::string body;
  unsigned y = 52;
  const auto text = [&](unsigned x, unsigned at, const char* anchor, const std::string& words) {
    detail::append(body, {"<text x=\"", x, "\" y=\"", at, "\" text-anchor=\"", anchor, "\" fill=\"", ink,
                          "\">", words, "</text>\n"});
  };
  const auto pixels = [&](double seconds, double longest) {
    return longest > 0 ? static_cast<unsigned>(width * std::clamp(seconds / longest, 0.0, 1.0)) : 0u;
  };
  const auto block = [&](unsigned x, unsigned long_, const char* color) {
    detail::append(body, {"<rect x=\"", x, "\" y=\"", y, "\" width=\"", std::max(1u, long_),
                          "\" height=\"20\" rx=\"2\" fill=\"", color, "\"/>\n"});
  };
  const auto bar = [&](const std::string& name, double seconds, double marked, double longest,
                       const std::string& value) {
    const unsigned all = pixels(seconds, longest), of_it = pixels(marked, longest);
    text(left - 10, y + 15, "end", name);
    if (of_it < all || all == 0) block(left, all - of_it, rest);
    if (of_it != 0) block(left + all - of_it, of_it, price);
    text(left + all + 8, y + 15, "start", value);
    y += row;
  };
  text(20, 32, "start", "the time of a step: loading costs " + detail::percent(share()) + " of it");
  const double longest = std::max({real, cached, loader});
  bar("with the loader", real, std::max(0.0, real - cached), longest, detail::in_seconds(real));
  bar("one batch, again and again", cached, 0, longest, detail::in_seconds(cached));
  bar("the loader alone", loader, 0, longest, detail::in_seconds(loader));
  if (!stages.empty()) {
    y += 26;
    text(20, y - 8, "start", "what the loader alone would save without a stage");
    y += 4;
    double most = 0;
    for (const headspace_stage& one : stages) most = std::max(most, one.saved);
    for (const headspace_stage& one : stages)
      bar(escaped(one.name), one.saved, one.name == why.busiest && one.saved > 0 ? one.saved : 0, most,
          detail::in_seconds(one.saved) + ", " + detail::percent(loader > 0 ? one.saved / loader : 0));
  }
  y += 22;
  text(20, y, "start", "verdict: " + std::string(to_string(why.limit)));
  return detail::text(
      {"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 ", y + 18, "\" width=\"760\" height=\"",
       y + 18,
       "\" font-size=\"14\" font-family=\"system-ui, -apple-system, Segoe UI, Helvetica, Arial, "
       "sans-serif\" role=\"img\">\n<title>What loading costs</title>\n",
       body, "</svg>\n"});
}

}  // namespace penstock::inline v0_1
