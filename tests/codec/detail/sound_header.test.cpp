// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/codec/detail/sound_header.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace codec_detail_sound_header_test {

namespace ps = penstock;
using namespace std::string_view_literals;

namespace {

std::string little(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value);
  return text;
}
std::string chunk(std::string_view type, const std::string& data) {
  return std::string(type) + little(data.size(), 4) + data +
         (data.size() % 2 == 0 ? "" : std::string(1, '\0'));
}
std::string format(std::uint16_t tag, std::uint16_t channels, std::uint32_t rate, std::uint16_t bits) {
  const std::uint32_t block = channels * bits / 8u;
  return little(tag, 2) + little(channels, 2) + little(rate, 4) + little(block * rate, 4) + little(block, 2) +
         little(bits, 2);
}
ps::detail::wav_layout layout(const std::string& chunks) {
  const std::string file = "RIFF" + little(chunks.size() + 4, 4) + "WAVE" + chunks;
  return ps::detail::wav_layout_of(ps::bytes_of(file));
}
std::string page(unsigned char flags, std::size_t bytes, std::uint64_t position = 0) {
  std::string made =
      "OggS" + std::string(1, '\0') + static_cast<char>(flags) + little(position, 8) + std::string(12, '\0');
  made += static_cast<char>(bytes / 255 + 1);
  made += std::string(bytes / 255, '\xff') + static_cast<char>(bytes % 255);
  return made + std::string(bytes, 'x');
}

}  // namespace

TEST_CASE("codec/detail/sound_header: formats by their first bytes") {
  const auto of = [](std::string_view begin) {
    return ps::detail::format_name(ps::detail::sound_format_of(ps::bytes_of(begin)));
  };
  CHECK(of("RIFF\1\2\3\4WAVEfmt ") == "wav");
  CHECK(of("RIFF\1\2\3\4WEBPVP8 ") == "unknown");
  CHECK(of("RF64\1\2\3\4WAVE") == "rf64");
  CHECK(of("fLaC") == "flac");
  CHECK(of("OggS\0\2 and then \1vorbis"sv) == "ogg");
  CHECK(of("OggS\0\2 and then OpusHead"sv) == "opus");
  CHECK(of("FORM\1\2\3\4AIFC") == "aiff");
  CHECK(of("FORM\1\2\3\4ILBM") == "unknown");
  CHECK(of(".snd") == "au");
  CHECK(of("caff") == "caf");
  CHECK(of("NIST_1A\n") == "nist");
  CHECK(of("ID3\4") == "mp3");
  CHECK(of("\xff\xfb\x90\x64") == "mp3");
  CHECK(of("\xff\xd8\xff\xe0") == "unknown");
  CHECK(of("") == "unknown");
}

TEST_CASE("codec/detail/sound_header: where a wav file has its samples") {
  const auto plain = layout(chunk("fmt ", format(1, 2, 8'000, 16)) + chunk("data", std::string(40, 's')));
  CHECK(plain.known);
  CHECK(plain.form == ps::sound_form{10, 8'000, 2});
  CHECK(plain.data == 44);
  CHECK((plain.tag == 1 && plain.bits == 16 && plain.block == 4));
  CHECK((plain.claimed == 40 && plain.there == 40));

  const auto behind = layout(chunk("LIST", "odd") + chunk("fmt ", format(3, 1, 8'000, 32)) +
                             chunk("fact", "four") + "data" + little(400, 4) + std::string(42, 's'));
  CHECK(behind.form == ps::sound_form{10, 8'000, 1});
  CHECK((behind.claimed == 400 && behind.there == 42));

  const std::string more = little(22, 2) + little(16, 2) + little(4, 4) + little(1, 2) + std::string(14, 'g');
  CHECK(layout(chunk("fmt ", format(0xfffe, 1, 8'000, 16) + more) + chunk("data", "ssss")).tag == 1);

  CHECK_FALSE(layout(chunk("data", "ssss")).known);
  CHECK_FALSE(layout(chunk("fmt ", format(1, 1, 8'000, 16))).known);
  CHECK_FALSE(layout("fmt " + little(0xffff'ffff, 4) + format(1, 1, 8'000, 16)).known);
  CHECK_FALSE(layout("").known);
  CHECK_FALSE(ps::detail::wav_layout_of(ps::bytes_of(std::string_view("RIFF"))).known);
  CHECK(ps::detail::is_placeholder(0xffff'ffff));
  CHECK_FALSE(ps::detail::is_placeholder(48'000));
}

TEST_CASE("codec/detail/sound_header: what a FLAC file says in its first block") {
  // 44,100 Hz, 2 channels, 16 bits, 5 * 2^32 + 7 frames
  const std::string file = "fLaC" + std::string("\x80\0\0\x22"sv) + std::string(10, '\0') +
                           std::string("\x0a\xc4\x42\xf5\0\0\0\7"sv) + std::string(16, '\0');
  CHECK(ps::detail::flac_form(ps::bytes_of(file)) == ps::sound_form{(std::uint64_t{5} << 32) + 7, 44'100, 2});
  CHECK(ps::detail::flac_form(ps::bytes_of(file).first(25)) == ps::sound_form{});
}

TEST_CASE("codec/detail/sound_header: whether the last page of Ogg is there") {
  const auto whole = [](const std::string& file) { return ps::detail::ogg_end_of(ps::bytes_of(file)).whole; };
  const auto position = [](const std::string& file) {
    return ps::detail::ogg_end_of(ps::bytes_of(file)).position;
  };
  const std::string file =
      page(2, 30) + page(0, 4'000, 700) + page(0, 90, ~std::uint64_t{0}) + page(4, 600, 900);
  CHECK(whole(file));
  CHECK(position(file) == 900);
  CHECK(whole(file + "a tag"));
  CHECK_FALSE(whole(file.substr(0, file.size() - 1)));
  CHECK(position(file.substr(0, file.size() - 1)) == 700);
  CHECK_FALSE(whole(page(2, 30) + page(0, 4'000)));
  CHECK(position(page(2, 30) + page(0, 4'000)) == 0);
  for (std::size_t n = 4; n < 40; ++n) CHECK_FALSE(whole(page(2, 30) + page(4, 600).substr(0, n)));
  CHECK(whole(page(4, 60'000)));
  CHECK(whole(std::string(200'000, 'x')));
}

TEST_CASE("codec/detail/sound_header: the lengths of RF64") {
  const std::string unknown = "data" + little(0xffff'ffff, 4) + "ssss";
  const auto of = [&](std::uint64_t data) {
    return layout(chunk("ds64", little(0, 8) + little(data, 8) + little(0, 12)) +
                  chunk("fmt ", format(1, 1, 8'000, 16)) + unknown);
  };
  CHECK(of(4).form.frames == 2);
  CHECK(of(4).claimed == 4);
  CHECK_FALSE(of(4).open);
  CHECK(of(std::uint64_t{1} << 33).claimed == std::uint64_t{1} << 33);
  CHECK(of(std::uint64_t{1} << 33).there == 4);
  CHECK_FALSE(of(std::uint64_t{1} << 33).open);
  CHECK(of(0).open);
  CHECK(layout(chunk("ds64", little(0, 15)) + chunk("fmt ", format(1, 1, 8'000, 16)) + unknown).open);
}

TEST_CASE("codec/detail/sound_header: where the first damaged page of Ogg is") {
  // CRC-32/CKSUM before its last step
  CHECK(ps::detail::ogg_crc(ps::bytes_of("123456789"sv)) == 0x89a1'897f);
  const auto sealed = [](std::string made) {
    const std::string crc = little(ps::detail::ogg_crc(ps::bytes_of(made)), 4);
    return made.replace(22, 4, crc);
  };
  const std::string first = sealed(page(2, 30)), second = sealed(page(4, 601, 900));
  const std::string file = first + second;
  const auto damage = [](const std::string& bytes) { return ps::detail::ogg_damage_of(ps::bytes_of(bytes)); };
  CHECK(damage(file) == file.size());
  CHECK(damage(file + "a tag") == file.size() + 5);
  CHECK(damage("") == 0);
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string bad = file;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    // What the last page's first letters become is behind the page before.
    if (at < first.size() || at >= first.size() + 4)
      CHECK(damage(bad) == (at < first.size() ? 0 : first.size()));
  }
  CHECK(damage(first + "x" + second) == first.size());
  for (std::size_t n = 4; n < second.size(); ++n) CHECK(damage(first + second.substr(0, n)) == first.size());
}

TEST_CASE("codec/detail/sound_header: the frames of an Ogg file up to a position") {
  const std::string begin = page(2, 30).substr(0, 28);
  const std::string vorbis =
      begin + "\1vorbis" + little(0, 4) + little(2, 1) + little(44'100, 4) + std::string(10, '\0');
  CHECK(ps::detail::ogg_form(ps::bytes_of(vorbis), 90) == ps::sound_form{90, 44'100, 2});
  const std::string opus =
      begin + "OpusHead" + little(1, 1) + little(1, 1) + little(312, 2) + std::string(10, '\0');
  CHECK(ps::detail::ogg_form(ps::bytes_of(opus), 1'000) == ps::sound_form{688, 48'000, 1});
  CHECK(ps::detail::ogg_form(ps::bytes_of(opus), 9).frames == 0);
  CHECK(ps::detail::ogg_form(ps::bytes_of(begin), 9) == ps::sound_form{});
  CHECK(ps::detail::ogg_form(ps::bytes_of(begin + std::string(40, 'x')), 9) == ps::sound_form{});
}

}  // namespace codec_detail_sound_header_test
