// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/channels.hpp>
#include <penstock/core/sound_segment.hpp>

namespace penstock::inline v0_1 {

/// A segment of a lazy sound: what `decode<audio>` makes of an utterance. Reads its frames and no others.
///
/// The offset and the duration are rounded to frames, so that segments of one duration have one length.
/// Throws `errc::shape` for a segment that begins at the end of the sound or behind it, or reaches further
/// beyond it than it may, and for a channel that the sound does not have. A sound of one channel is taken for
/// whatever channel is asked for.
template <lazy_sound S>
class segment_of_sound : public sound_over<segment_of_sound<S>, S> {
 public:
  segment_of_sound(S sound, const sound_segment& wanted, sound_scratch& scratch)
      : segment_of_sound::sound_over(std::move(sound), scratch) {
    const sound_form form = this->sound_.form();
    part_.first = detail::frames_in(wanted.offset, form.rate);
    if (part_.first >= form.frames) [[unlikely]]
      throw error(errc::shape, {"the segment begins at ", detail::number_text(wanted.offset),
                                " s, and the sound ends at ", detail::time_text(form.frames, form.rate)});
    const std::uint64_t there = form.frames - part_.first;
    part_.frames = wanted.duration > 0
                       ? std::max<std::uint64_t>(detail::frames_in(wanted.duration, form.rate), 1)
                       : there;
    if (part_.frames > there) {
      if (part_.frames - there > detail::frames_in(wanted.max_overshoot, form.rate)) [[unlikely]]
        throw error(errc::shape,
                    {"the segment ends at ", detail::number_text(wanted.offset + wanted.duration),
                     " s, and the sound at ", detail::time_text(form.frames, form.rate),
                     "; correct the manifest, or allow it with .max_overshoot"});
      part_.frames = there;
    }
    if (wanted.channel < 0 || form.channels == 1) return;
    channel_ = static_cast<std::uint32_t>(wanted.channel);
    if (channel_ >= form.channels) [[unlikely]]
      throw error(errc::shape, {"the segment is of channel ", channel_, ", and the sound has ", form.channels,
                                ", which are counted from 0"});
  }

  [[nodiscard]] sound_form form() const {
    const sound_form inner = this->sound_.form();
    return {part_.frames, inner.rate, channel_ == all ? inner.channels : 1};
  }
  void draw(const sound_part& part, const sound_place& place) const {
    const sound_part within{part_.first + part.first, part.frames};
    if (channel_ == all) return this->sound_.draw(within, place);
    one_channel<S>(this->sound_, channel_, *this->scratch_).draw(within, place);
  }

 private:
  static constexpr std::uint32_t all = std::numeric_limits<std::uint32_t>::max();

  sound_part part_;
  std::uint32_t channel_ = all;
};

}  // namespace penstock::inline v0_1
