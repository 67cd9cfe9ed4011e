// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/core/element.hpp>
#include <penstock/image/pixels.hpp>

#include <span>
#include <utility>

/// Films and clips that are not decoded yet: frames are decoded when the batch has a place for them.
namespace penstock::inline v0_1 {

/// What a film's header and index say of it; what functions get that are given a film.
struct film_facts {
  std::uint64_t frames = 0;
  image_size size;        ///< as shown: turned as the file says
  double frame_rate = 0;  ///< frames a second, on average
  double begin_time = 0;  ///< when the first frame begins to be shown, in seconds
  double duration = 0;    ///< from there to the end of the last frame, in seconds

  friend bool operator==(const film_facts&, const film_facts&) = default;
};

/// A film that is not decoded yet. It is valid until the worker's next `decode`.
///   facts()                film_facts
///   frame_at(seconds)      the frame that is shown then; `facts().frames` if none is
///   picture()              a lazy image: the frame that `each_of` is at
///   each_of(frames, draw)  decodes frames, and calls draw(i) when `picture()` is frames[i]; in the order of
///                          decoding, each group of pictures once
///   memory()               a buffer that a clip's `finish` may use
template <class F>
concept lazy_film = requires(const std::remove_cvref_t<F>& film, double seconds,
                             std::span<const std::uint32_t> frames, void (*draw)(std::size_t)) {
  typename std::remove_cvref_t<F>::is_lazy_film;
  { film.facts() } -> std::convertible_to<film_facts>;
  { film.frame_at(seconds) } -> std::convertible_to<std::uint64_t>;
  film.picture();
  film.each_of(frames, draw);
  { film.memory() } -> std::same_as<buffer&>;
};

/// Some frames of a film: an array expression of shape (frames, ...), of which `Each` is one frame: a lazy
/// image, or what operations on images made of one. An operation on images that gets a clip is called once,
/// with the frame that is not decoded yet, so that it draws one rectangle for all frames. Frames are decoded
/// when the clip is written to its place, straight into it.
///
/// An operation applies to a clip by `with(f, call)`: see `each_type` in `stage/functions.hpp`. With `Alone`
/// the clip is of one frame, and its shape is that of the frame: it has no first dimension.
template <lazy_film Film, class Each, bool Alone = false>
class film_clip {
 public:
  using unfinished = void;
  using is_film_clip = void;
  using each_type = Each;
  using value_type = typename Each::value_type;

  /// `frames` must live as long as the clip, each below the film's number of frames.
  film_clip(const Film& film, std::span<const std::uint32_t> frames, const Each& each)
      : film_(film), frames_(frames), each_(each) {}

  /// The numbers of the frames, in the order of the clip.
  [[nodiscard]] std::span<const std::uint32_t> frames() const noexcept { return frames_; }
  [[nodiscard]] const Film& film() const noexcept { return film_; }
  /// One frame, before it is decoded.
  [[nodiscard]] const Each& each() const noexcept { return each_; }

  /// Of each frame, while they are images.
  [[nodiscard]] image_size size() const { return each_.size(); }

  /// (frames, height, width, channels), or (frames, channels, height, width) after `to_chw`.
  [[nodiscard]] extents shape() const {
    if constexpr (Alone)
      return each_.shape();
    else
      return each_.shape().prepend(frames_.size());
  }
  void write_to(const destination<value_type>& into) const {
    film_.each_of(frames_, [&]([[maybe_unused]] std::size_t i) {
      if constexpr (Alone)
        each_.write_to(into);
      else
        each_.write_to(into[i]);
    });
  }
  /// All values, without gaps; valid as long as the film, until its next use.
  [[nodiscard]] tensor_view<const value_type> finish() const {
    const extents all = shape();
    buffer& memory = film_.memory();
    memory.resize_for_overwrite(detail::to_size(all.elements()) * sizeof(value_type));
    auto* const values = reinterpret_cast<value_type*>(memory.data());
    write_to(destination<value_type>(values, all));
    return {values, all};
  }

  /// The clip of frames that `f` makes of one of these.
  template <class F, class Call>
  [[nodiscard]] auto with(const F& f, const Call& c) const {
    using made = std::remove_cvref_t<decltype(f(each_, c))>;
    return film_clip<Film, made, Alone>(film_, frames_, f(each_, c));
  }

 private:
  Film film_;
  std::span<const std::uint32_t> frames_;
  Each each_;
};

}  // namespace penstock::inline v0_1
