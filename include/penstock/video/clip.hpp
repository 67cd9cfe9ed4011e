// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/video/film.hpp>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

/// Operations that choose frames of a film: which ones is decided before anything is decoded.
namespace penstock::inline v0_1 {

namespace mistakes {

struct clip_wants_film : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation chooses frames of a film and gets something else; decode a film "
        "first, as in decode<field<\"mp4\", video>>, name its field, as in map<\"mp4\">(clip(16)), and "
        "choose only once");
  }
};

}  // namespace mistakes

/// What becomes of the frames of a clip that lie behind the film's end, as TorchCodec's samplers have it.
///   repeat_last   the clip's last frame that the film has is repeated
///   wrap          the clip begins again with its own first frame
///   error         the sample is an error
enum class clip_policy : std::uint8_t { repeat_last, wrap, error };

/// Which frames `clip` takes.
struct clip_options {
  std::uint64_t stride = 1;  ///< from one frame to the next
  std::uint64_t at = 0;      ///< the first one
  clip_policy policy = clip_policy::repeat_last;
};

/// Which frames `random_clip` takes.
struct random_clip_options {
  std::uint64_t stride = 1;  ///< from one frame to the next
  clip_policy policy = clip_policy::repeat_last;
};

/// What an operation that chooses frames keeps for one worker: their numbers.
struct frames_scratch {
  std::vector<std::uint32_t> frames;
};

namespace detail {

/// The most frames of a clip.
inline constexpr std::uint64_t longest_clip = std::uint64_t{1} << 20;

[[nodiscard]] inline std::uint64_t frames_of(const any_count& n, std::string_view operation) {
  const std::uint64_t frames = n.of(operation);
  if (frames == 0 || frames > longest_clip)
    throw error(errc::argument,
                {operation, ": ", frames, " frames; write a number from 1 to ", longest_clip});
  return frames;
}
inline void check_stride(std::uint64_t stride, std::string_view operation) {
  if (stride == 0 || stride > std::uint64_t{1} << 32)
    throw error(errc::argument, {operation, ": a stride of ", stride, "; write a number from 1 to 2^32"});
}
[[noreturn, gnu::cold]] inline void refuse_frame(std::string_view operation, std::uint64_t frame,
                                                 std::uint64_t frames) {
  throw error(errc::shape, {operation, ": frame ", frame, " of a film of ", frames, " frames"});
}

/// Appends the frames of a clip of a film that has more than `first` frames.
inline void append_clip(std::vector<std::uint32_t>& to, std::uint64_t first, std::uint64_t count,
                        std::uint64_t stride, clip_policy policy, std::uint64_t frames,
                        std::string_view operation) {
  const std::uint64_t there = std::min(count, (frames - 1 - first) / stride + 1);
  if (there < count && policy == clip_policy::error)
    throw error(errc::shape, {operation, ": ", count, " frames at a stride of ", stride, " from frame ",
                              first, " on are more than the ", frames, " frames of the film"});
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t own = i < there ? i : policy == clip_policy::wrap ? i % there : there - 1;
    to.push_back(static_cast<std::uint32_t>(first + own * stride));
  }
}

}  // namespace detail

/// The base of operations that choose frames: functions for `map` that make a clip of a film. `Self` has
/// `choose(film, random, frames)`, which appends the numbers of frames, below the film's, in any order, and
/// `describe()`.
template <class Self, bool Random = false>
struct choosing_frames {
  using accepts_call = void;
  using scratch = frames_scratch;
  template <class>
  static constexpr bool uses_random = Random;
  using wrong_argument = mistakes::clip_wants_film;

  template <lazy_film Film>
  [[nodiscard]] auto operator()(const Film& film, const call<frames_scratch>& c) const {
    std::vector<std::uint32_t>& frames = c.scratch.frames;
    frames.clear();
    rng random = c.random();
    const Self& self = static_cast<const Self&>(*this);
    if (film.facts().frames == 0) [[unlikely]]
      throw error(errc::shape, {self.describe(), ": the film has no frames"});
    self.choose(film, random, frames);
    const auto picture = film.picture();
    return film_clip<Film, std::remove_const_t<decltype(picture)>>(film, {frames.data(), frames.size()},
                                                                   picture);
  }
};

/// What `clip(...)` makes: a function for `map`.
class clip_operation : public choosing_frames<clip_operation> {
 public:
  clip_operation(std::uint64_t count, const clip_options& options) : count_(count), options_(options) {
    detail::check_stride(options.stride, "clip");
  }

  template <class Film>
  void choose(const Film& film, rng& /*random*/, std::vector<std::uint32_t>& frames) const {
    const std::uint64_t all = film.facts().frames;
    if (options_.at >= all) [[unlikely]]
      detail::refuse_frame("clip", options_.at, all);
    detail::append_clip(frames, options_.at, count_, options_.stride, options_.policy, all, "clip");
  }
  [[nodiscard]] std::string describe() const { return "clip(" + std::to_string(count_) + ")"; }

 private:
  std::uint64_t count_;
  clip_options options_;
};

/// What `random_clip(...)` makes: a function for `map`.
class random_clip_operation : public choosing_frames<random_clip_operation, true> {
 public:
  random_clip_operation(std::uint64_t count, const random_clip_options& options)
      : count_(count), options_(options) {
    detail::check_stride(options.stride, "random_clip");
  }

  template <class Film>
  void choose(const Film& film, rng& random, std::vector<std::uint32_t>& frames) const {
    const std::uint64_t all = film.facts().frames, span = (count_ - 1) * options_.stride + 1;
    const std::uint64_t first = random.below(all > span ? all - span + 1 : 1);
    detail::append_clip(frames, first, count_, options_.stride, options_.policy, all, "random_clip");
  }
  [[nodiscard]] std::string describe() const { return "random_clip(" + std::to_string(count_) + ")"; }

 private:
  std::uint64_t count_;
  random_clip_options options_;
};

/// What `uniform_frames(...)` makes: a function for `map`.
class uniform_frames_operation : public choosing_frames<uniform_frames_operation> {
 public:
  explicit uniform_frames_operation(std::uint64_t count) : count_(count) {}

  template <class Film>
  void choose(const Film& film, rng& /*random*/, std::vector<std::uint32_t>& frames) const {
    const std::uint64_t last = film.facts().frames - 1;
    for (std::uint64_t i = 0; i < count_; ++i)
      frames.push_back(static_cast<std::uint32_t>(count_ == 1 ? 0 : i * last / (count_ - 1)));
  }
  [[nodiscard]] std::string describe() const { return "uniform_frames(" + std::to_string(count_) + ")"; }

 private:
  std::uint64_t count_;
};

/// What `frames_at(...)` makes: a function for `map`.
class frames_at_operation : public choosing_frames<frames_at_operation> {
 public:
  explicit frames_at_operation(std::vector<std::uint64_t> frames) : frames_(std::move(frames)) {
    static_cast<void>(detail::frames_of(frames_.size(), "frames_at"));
  }

  template <class Film>
  void choose(const Film& film, rng& /*random*/, std::vector<std::uint32_t>& frames) const {
    const std::uint64_t all = film.facts().frames;
    for (const std::uint64_t frame : frames_) {
      if (frame >= all) [[unlikely]]
        detail::refuse_frame("frames_at", frame, all);
      frames.push_back(static_cast<std::uint32_t>(frame));
    }
  }
  [[nodiscard]] std::string describe() const { return "frames_at"; }

 private:
  std::vector<std::uint64_t> frames_;
};

/// What `frames_played_at(...)` makes: a function for `map`.
class frames_played_at_operation : public choosing_frames<frames_played_at_operation> {
 public:
  explicit frames_played_at_operation(std::vector<double> seconds) : seconds_(std::move(seconds)) {
    static_cast<void>(detail::frames_of(seconds_.size(), "frames_played_at"));
  }

  template <class Film>
  void choose(const Film& film, rng& /*random*/, std::vector<std::uint32_t>& frames) const {
    const film_facts facts = film.facts();
    for (const double second : seconds_) {
      const std::uint64_t frame = film.frame_at(second);
      if (frame >= facts.frames) [[unlikely]]
        throw error(errc::shape, {"frames_played_at: no frame is shown at ", std::to_string(second),
                                  " s; the film is shown from ", std::to_string(facts.begin_time), " s to ",
                                  std::to_string(facts.begin_time + facts.duration), " s"});
      frames.push_back(static_cast<std::uint32_t>(frame));
    }
  }
  [[nodiscard]] std::string describe() const { return "frames_played_at"; }

 private:
  std::vector<double> seconds_;
};

/// `n` frames from frame `at` on, each `stride` behind the one before it. What lies behind the film's end is
/// what `policy` says.
///
/// In: a lazy film. Out: a clip, of shape (n, height, width, channels), which operations on images apply to:
/// one call for all of its frames, so that a random crop is the same rectangle in each. Pointwise. No frame
/// is decoded before the clip has its place in the batch; then each group of pictures that it needs is
/// decoded once.
/// Throws `errc::argument` for no frames, for more than 2^20, and for a stride of 0; `errc::shape`, for a
/// sample, if the film does not have frame `at`, or too few with `clip_policy::error`.
///
///     auto first = map<"mp4">(clip(16, {.stride = 4}), resize(128, 171), center_crop(112), to_chw());
[[nodiscard]] inline clip_operation clip(any_count n, const clip_options& options = {}) {
  return {detail::frames_of(n, "clip"), options};
}

/// A clip whose first frame is drawn, so that the clip ends within the film, if it is long enough:
/// TorchCodec's `clips_at_random_indices`. A film that is shorter is taken from its first frame on, with
/// `policy` behind its end.
/// Draws one random number. Otherwise as `clip`.
///
///     auto train = map<"mp4">(random_clip(16, {.stride = 4}), random_resized_crop(112), horizontal_flip());
[[nodiscard]] inline random_clip_operation random_clip(any_count n, const random_clip_options& options = {}) {
  return {detail::frames_of(n, "random_clip"), options};
}

/// `n` frames from the first to the last one, at distances that are equal but for rounding down: TorchCodec's
/// `clips_at_regular_indices(num_clips=n)`. Of a film of fewer frames some are taken again. Otherwise as
/// `clip`.
///
///     auto some = map<"mp4">(uniform_frames(8), resize(224, 224));
[[nodiscard]] inline uniform_frames_operation uniform_frames(any_count n) {
  return uniform_frames_operation(detail::frames_of(n, "uniform_frames"));
}

/// The frames of these numbers, in this order; TorchCodec's `get_frames_at`. Throws `errc::shape`, for a
/// sample, if the film does not have one of them. Otherwise as `clip`.
///
///     auto three = map<"mp4">(frames_at({0, 30, 10}));
[[nodiscard]] inline frames_at_operation frames_at(std::initializer_list<std::uint64_t> frames) {
  return frames_at_operation(std::vector<std::uint64_t>(frames));
}
[[nodiscard]] inline frames_at_operation frames_at(std::vector<std::uint64_t> frames) {
  return frames_at_operation(std::move(frames));
}

/// The frames that are shown at these seconds, in this order: frame n from its time to that of the next one.
/// TorchCodec's `get_frames_played_at`. Seconds are the file's, which need not begin at 0: see
/// `film_facts::begin_time`. Throws `errc::shape`, for a sample, if no frame is shown at one of them.
/// Otherwise as `clip`.
///
///     auto two = map<"mp4">(frames_played_at({0.0, 0.5}));
[[nodiscard]] inline frames_played_at_operation frames_played_at(std::initializer_list<double> seconds) {
  return frames_played_at_operation(std::vector<double>(seconds));
}
[[nodiscard]] inline frames_played_at_operation frames_played_at(std::vector<double> seconds) {
  return frames_played_at_operation(std::move(seconds));
}

}  // namespace penstock::inline v0_1
