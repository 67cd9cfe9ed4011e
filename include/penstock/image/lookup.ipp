// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/lookup.hpp>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE void invert_table::operator()(std::uint8_t* table) const {
  for (std::size_t v = 0; v < 256; ++v) table[v] = static_cast<std::uint8_t>(255 - v);
}

PENSTOCK_INLINE void solarize_table::operator()(std::uint8_t* table) const {
  for (std::size_t v = 0; v < 256; ++v)
    table[v] = static_cast<std::uint8_t>(static_cast<double>(v) >= threshold ? 255 - v : v);
}

PENSTOCK_INLINE void posterize_table::operator()(std::uint8_t* table) const {
  const unsigned mask = 0xffu << (8 - bits);
  for (unsigned v = 0; v < 256; ++v) table[v] = static_cast<std::uint8_t>(v & mask);
}

PENSTOCK_INLINE void brightness_table::operator()(std::uint8_t* table) const {
  for (std::size_t v = 0; v < 256; ++v)
    table[v] = to_byte(static_cast<float>(factor) * static_cast<float>(v));
}

PENSTOCK_INLINE void contrast_table::operator()(std::uint8_t* table, std::uint64_t sum,
                                                std::uint64_t count) const {
  const float mean = count == 0 ? 0.0f : static_cast<float>(sum) / static_cast<float>(count);
  const float rest = static_cast<float>(1.0 - factor) * mean;
  float products[256];
  fill_products(products, static_cast<float>(factor));
  for (std::size_t v = 0; v < 256; ++v) table[v] = to_byte(rounded(products[v]) + rounded(rest));
}

PENSTOCK_INLINE void autocontrast_table::operator()(std::uint8_t* table,
                                                    const std::uint64_t* histogram) const {
  std::size_t low = 0, high = 255;
  while (low < 255 && histogram[low] == 0) ++low;
  while (high > low && histogram[high] == 0) --high;
  if (low == high) return;
  const float scale =
      1.0f / static_cast<float>(high - low) * 255.0f;  // as PyTorch divides a number by an array
  for (std::size_t v = 0; v < 256; ++v)
    table[v] = to_byte((static_cast<float>(v) - static_cast<float>(low)) * scale);
}

PENSTOCK_INLINE void equalize_table::operator()(std::uint8_t* table, const std::uint64_t* histogram) const {
  std::uint64_t all = 0, last = 0;
  for (std::size_t v = 0; v < 256; ++v) {
    all += histogram[v];
    if (histogram[v] != 0) last = histogram[v];
  }
  const std::uint64_t step = (all - last) / 255;
  if (step == 0) return;
  std::uint64_t below = 0;
  table[0] = 0;
  for (std::size_t v = 1; v < 256; ++v) {
    below += histogram[v - 1];
    const std::uint64_t level = (below + step / 2) / step;
    table[v] = static_cast<std::uint8_t>(level < 255 ? level : 255);
  }
}

PENSTOCK_INLINE solarize_table solarizing(std::string_view operation, double threshold) {
  check_range(operation, "the threshold", threshold, 0, 256);
  return {threshold};
}

PENSTOCK_INLINE posterize_table posterizing(std::string_view operation, int bits) {
  check_range(operation, "the number of bits", bits, 0, 8);
  return {bits};
}

}  // namespace detail

PENSTOCK_INLINE lookup_operation<detail::invert_table> invert() { return {{}}; }

PENSTOCK_INLINE random_lookup_operation<detail::invert_table> random_invert(double p) { return {{}, p}; }

PENSTOCK_INLINE lookup_operation<detail::solarize_table> solarize(double threshold) {
  return {detail::solarizing("solarize", threshold)};
}

PENSTOCK_INLINE random_lookup_operation<detail::solarize_table> random_solarize(double threshold, double p) {
  return {detail::solarizing("random_solarize", threshold), p};
}

PENSTOCK_INLINE lookup_operation<detail::posterize_table> posterize(int bits) {
  return {detail::posterizing("posterize", bits)};
}

PENSTOCK_INLINE random_lookup_operation<detail::posterize_table> random_posterize(int bits, double p) {
  return {detail::posterizing("random_posterize", bits), p};
}

PENSTOCK_INLINE lookup_operation<detail::brightness_table> brightness(double factor) {
  detail::check_range("brightness", "the factor", factor, 0, 1e6);
  return {{factor}};
}

PENSTOCK_INLINE lookup_operation<detail::contrast_table> contrast(double factor) {
  detail::check_range("contrast", "the factor", factor, 0, 1e6);
  return {{factor}};
}

PENSTOCK_INLINE lookup_operation<detail::autocontrast_table> autocontrast() { return {{}}; }

PENSTOCK_INLINE random_lookup_operation<detail::autocontrast_table> random_autocontrast(double p) {
  return {{}, p};
}

PENSTOCK_INLINE lookup_operation<detail::equalize_table> equalize() { return {{}}; }

PENSTOCK_INLINE random_lookup_operation<detail::equalize_table> random_equalize(double p) { return {{}, p}; }

}  // namespace penstock::inline v0_1
