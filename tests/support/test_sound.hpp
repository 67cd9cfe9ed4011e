// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/operation.hpp>
#include <penstock/core/random.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace penstock_test {

namespace ps = penstock;

/// A lazy sound in memory, which notes what is read of it. Copies share the samples and the notes.
class test_sound : public ps::sound_expression<test_sound> {
 public:
  /// Noise from -1 to 1, which depends on the form and the seed only.
  explicit test_sound(const ps::sound_form& form, std::uint64_t seed = 1)
      : state_(std::make_shared<state>()) {
    std::vector<float> samples(form.frames * form.channels);
    ps::rng random(seed, 0, 0);
    for (float& sample : samples) sample = static_cast<float>(random.uniform(-1, 1));
    state_->sound.assign(std::move(samples), form);
  }
  /// These samples, channel by channel.
  test_sound(const ps::sound_form& form, std::vector<float> samples) : state_(std::make_shared<state>()) {
    state_->sound.assign(std::move(samples), form);
  }

  [[nodiscard]] ps::sound_form form() const { return state_->sound.form(); }
  void draw(const ps::sound_part& part, const ps::sound_place& place) const {
    state_->parts.push_back(part);
    state_->outside = state_->outside || !part.within(form());
    if (part.within(form())) state_->sound.shown().draw(part, place);
  }
  [[nodiscard]] ps::sound_scratch& memory() const { return state_->scratch; }

  /// What was read, in order.
  [[nodiscard]] const std::vector<ps::sound_part>& parts() const { return state_->parts; }
  [[nodiscard]] bool read_outside() const { return state_->outside; }

 private:
  struct state {
    ps::kept_sound sound;
    ps::sound_scratch scratch;
    std::vector<ps::sound_part> parts;
    bool outside = false;
  };
  std::shared_ptr<state> state_;
};

/// A call of an operation, with its scratch.
struct sound_call {
  ps::sound_scratch scratch;

  [[nodiscard]] ps::call<ps::sound_scratch> at(std::uint64_t index) { return {{0, index}, 0, 7, 1, scratch}; }
};

/// A part of a sound, channel by channel.
template <ps::lazy_sound S>
std::vector<float> samples_of(const S& sound, const ps::sound_part& part) {
  const std::size_t channels = sound.form().channels;
  std::vector<float> samples(part.frames * channels, -9.0f);
  sound.draw(part, {samples.data(), static_cast<std::size_t>(part.frames)});
  return samples;
}
template <ps::lazy_sound S>
std::vector<float> samples_of(const S& sound) {
  return samples_of(sound, {0, sound.form().frames});
}

/// Whether parts of a sound, read in several orders, are parts of the whole, within a distance.
template <ps::lazy_sound S>
bool parts_agree(const S& sound, float distance = 0) {
  const ps::sound_form form = sound.form();
  const std::vector<float> whole = samples_of(sound);
  const std::uint64_t n = form.frames;
  for (const ps::sound_part& part :
       {ps::sound_part{n / 2, n - n / 2}, ps::sound_part{0, n / 3 + 1}, ps::sound_part{n - 1, 1},
        ps::sound_part{n / 4, n / 4}, ps::sound_part{0, 1}, ps::sound_part{n / 2, 0}}) {
    const std::vector<float> some = samples_of(sound, part);
    for (std::size_t c = 0; c < form.channels; ++c)
      for (std::size_t i = 0; i < part.frames; ++i)
        if (!(std::abs(some[c * part.frames + i] - whole[c * n + part.first + i]) <= distance)) return false;
  }
  return true;
}

}  // namespace penstock_test
