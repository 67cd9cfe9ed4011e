// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<soxr.h>)
#error "penstock/audio/resample.hpp needs libsoxr: link penstock::resample"
#endif

#include <penstock/audio/operation.hpp>
#include <penstock/core/any_count.hpp>

#include <soxr.h>

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

namespace penstock::inline v0_1 {

/// How exactly `resample` computes: libsoxr's recipes, whose names they have.
///   high        20 bits: what `soxr.resample` and librosa's "soxr_hq" do
///   very_high   28 bits, in double precision; about twice the time
enum class resample_quality : std::uint8_t { high, very_high };

namespace detail {

/// `out` frames for every `in` frames, without common factors.
struct rate_ratio {
  std::uint64_t in = 1, out = 1;

  [[nodiscard]] static constexpr rate_ratio of(std::uint64_t in, std::uint64_t out) noexcept {
    const std::uint64_t common = std::gcd(in, out);
    return {in / common, out / common};
  }
  /// The frames that libsoxr makes of so many: rounded, halves up.
  [[nodiscard]] constexpr std::uint64_t frames(std::uint64_t count) const noexcept {
    return (count / in) * out + ((count % in) * out * 2 + in) / (2 * in);
  }
  /// The frames of the input that those of the output depend on. It begins where an input and an output frame
  /// have the same time, so that libsoxr, which begins with these, has the phase of the whole.
  [[nodiscard]] constexpr sound_part needed(const sound_part& part, std::uint64_t all) const noexcept {
    // In frames of the lower rate: libsoxr's filters are shorter. With 256, parts in double precision already
    // equal those of the whole to the last bit.
    constexpr std::uint64_t reach = 512;
    const std::uint64_t margin = in > out ? reach * in / out + 1 : reach;
    const std::uint64_t begin = part.first / out * in + part.first % out * in / out;
    const std::uint64_t last = part.first + part.frames;
    const std::uint64_t end = last / out * in + last % out * in / out + 1;
    const std::uint64_t first = begin > margin ? (begin - margin) / in * in : 0;
    return {first, std::min(all, end + margin) - first};
  }
};

struct soxr_freed {
  void operator()(soxr* state) const noexcept { soxr_delete(state); }
};

[[noreturn, gnu::cold]] inline void refuse_soxr(const char* fault) {
  throw error(errc::argument, {"libsoxr cannot resample: ", fault});
}

/// Resamples channels of samples, from the first to the last frame that there is. Leaves `skipped` frames of
/// the output away, and writes those that follow to the place; what libsoxr does not make is silence. Source:
/// libsoxr 0.1.3, soxr.h.
inline void run_soxr(const rate_ratio& ratio, resample_quality quality, const sound_place& input,
                     std::uint64_t frames, std::size_t channels, std::uint64_t skipped,
                     const sound_place& output, std::uint64_t wanted, buffer& spare) {
  const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_S, SOXR_FLOAT32_S);
  const soxr_quality_spec_t recipe =
      soxr_quality_spec(quality == resample_quality::high ? SOXR_HQ : SOXR_VHQ, 0);
  const soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
  soxr_error_t fault = nullptr;
  const std::unique_ptr<soxr, soxr_freed> state(
      soxr_create(static_cast<double>(ratio.in), static_cast<double>(ratio.out),
                  static_cast<unsigned>(channels), &fault, &io, &recipe, &runtime));
  if (fault != nullptr) refuse_soxr(fault);
  if (!state) throw std::bad_alloc();
  constexpr std::uint64_t piece = 8192;
  std::uint64_t taken = 0, made = 0;
  std::vector<const float*> from(channels);
  std::vector<float*> to(channels);
  float* const thrown_away =
      skipped == 0 ? nullptr : room_for_samples(spare, std::min(piece, skipped) * channels);
  while (made < skipped + wanted) {
    const bool skip = made < skipped;
    const std::uint64_t room = skip ? std::min(piece, skipped - made) : skipped + wanted - made;
    for (std::size_t c = 0; c < channels; ++c) {
      from[c] = input.channel(c) + taken;
      to[c] = skip ? thrown_away + c * room : output.channel(c) + (made - skipped);
    }
    std::size_t consumed = 0, produced = 0;
    fault = soxr_process(state.get(), taken == frames ? nullptr : static_cast<soxr_in_t>(from.data()),
                         to_size(frames - taken), &consumed, static_cast<soxr_out_t>(to.data()),
                         to_size(room), &produced);
    if (fault != nullptr) refuse_soxr(fault);
    if (consumed == 0 && produced == 0 && taken == frames) break;
    taken += consumed;
    made += produced;
  }
  const std::uint64_t there = std::max(made, skipped) - skipped;
  for (std::size_t c = 0; c < channels; ++c)
    std::fill_n(output.channel(c) + there, to_size(wanted - there), 0.0f);
}

}  // namespace detail

/// A lazy sound at another rate. A part of it is made of those frames of the sound within that it depends on.
template <lazy_sound S>
class resampled_sound : public sound_over<resampled_sound<S>, S> {
 public:
  /// Says that its rate is `rate`, and has `ratio.out` frames for every `ratio.in` of the sound within.
  resampled_sound(S sound, const detail::rate_ratio& ratio, std::uint32_t rate, resample_quality quality,
                  sound_scratch& scratch)
      : resampled_sound::sound_over(std::move(sound), scratch),
        ratio_(ratio),
        rate_(rate),
        quality_(quality) {}

  [[nodiscard]] sound_form form() const {
    const sound_form inner = this->sound_.form();
    return {ratio_.frames(inner.frames), rate_, inner.channels};
  }
  [[nodiscard]] bool parts_differ() const { return ratio_.in != ratio_.out || this->sound_.parts_differ(); }
  void draw(const sound_part& part, const sound_place& place) const {
    if (part.frames == 0) return;
    if (ratio_.in == ratio_.out) return this->sound_.draw(part, place);
    const sound_form inner = this->sound_.form();
    const sound_part needed = ratio_.needed(part, inner.frames);
    sound_scratch& scratch = this->memory();
    const sound_place input{detail::room_for_samples(scratch.samples, needed.frames * inner.channels),
                            detail::to_size(needed.frames)};
    this->sound_.draw(needed, input);
    detail::run_soxr(ratio_, quality_, input, needed.frames, inner.channels,
                     part.first - needed.first / ratio_.in * ratio_.out, place, part.frames, scratch.work);
  }

 private:
  detail::rate_ratio ratio_;
  std::uint32_t rate_;
  resample_quality quality_;
};

struct resample_options {
  resample_quality quality = resample_quality::high;
};

/// What `resample(rate)` makes: a function for `map`.
class resample_operation : public audio_operation {
 public:
  resample_operation(std::uint32_t rate, const resample_options& options) : rate_(rate), options_(options) {}

  template <lazy_sound S>
  [[nodiscard]] resampled_sound<S> operator()(const S& sound, const call<sound_scratch>& c) const {
    return {sound, detail::rate_ratio::of(sound.form().rate, rate_), rate_, options_.quality, c.scratch};
  }
  [[nodiscard]] std::string describe() const { return detail::text({"resample(", rate_, ")"}); }

 private:
  std::uint32_t rate_;
  resample_options options_;
};

/// Sounds at this rate, in frames a second, with libsoxr. `soxr.resample` of PyPI and librosa's `"soxr_hq"`,
/// within 1e-6 of it; torchaudio's `Resample` has shorter filters, and DALI's `audio_resample` others.
///
/// In: a lazy sound. Out: a lazy sound with frames * rate / its rate frames, rounded. A part is resampled
/// from the frames that it depends on, with the phase of the whole, and within 1e-6 of that part of the
/// whole;
/// within 1e-5 for ratios of large numbers, as 16,000 : 16,001, whose phases libsoxr interpolates. Pointwise.
/// Cost: libsoxr's, which allocates and designs its filters for each part, and two small allocations; samples
/// lie in the worker's scratch once, between decoder and libsoxr. A sound that has this rate passes.
/// Throws `errc::argument` for a rate of 0, or of more than 768,000.
///
///     auto speech = map<"flac">(mono(), resample(16'000), random_crop(5.0));
[[nodiscard]] inline resample_operation resample(any_count rate, const resample_options& options = {}) {
  const std::uint64_t frames = rate.of("resample");
  if (frames == 0 || frames > 768'000)
    throw error(errc::argument,
                {"resample takes a rate from 1 to 768000 frames in a second, and this is ", frames})
        .in_stage("resample");
  return {static_cast<std::uint32_t>(frames), options};
}

}  // namespace penstock::inline v0_1
