// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/flexible_values.hpp>

#include <penstock/device/host.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

namespace flexible_values_test {

namespace ps = penstock;

namespace {

/// Two-byte values, written as a worker would write them.
struct shorts : ps::flexible_values {
  shorts(ps::host::session& session, ps::memory_account& account, ps::collation how)
      : ps::flexible_values(session, account, how, 2), how_(how) {}
  void write(std::size_t slot, const std::vector<std::int16_t>& values) {
    const ps::extents given(values.size());
    std::byte* const into = knows_shape() && given == shape() ? in_place(slot) : put_aside(slot, given);
    std::memcpy(into, values.data(), values.size() * 2);
  }
  void finish(std::size_t slots, std::size_t valid, bool holes) {
    if (how_ == ps::collation::stacked)
      finish_stack(slots, valid, holes);
    else if (how_ == ps::collation::padded)
      finish_padded(slots, valid, holes);
    else
      finish_ragged(slots, valid);
  }
  [[nodiscard]] std::vector<std::int16_t> all(std::size_t slots) const {
    const ps::bytes_view bytes = this->bytes(slots);
    std::vector<std::int16_t> values(bytes.size() / 2);
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  ps::collation how_;
};

struct fixture {
  ps::host::session device;
  ps::memory_account account;
};

}  // namespace

TEST_CASE("run/flexible_values: contiguous, stacked, ragged or padded") {
  fixture f;
  shorts stacked(f.device, f.account, ps::collation::stacked);
  for (int round = 0; round < 2; ++round) {  // first set aside, then in place
    stacked.begin(3);
    stacked.write(0, {1, 2});
    stacked.write(1, {3, 4});
    stacked.finish(3, 2, false);
    CHECK(stacked.all(3) == std::vector<std::int16_t>{1, 2, 3, 4, 0, 0});
  }
  shorts ragged(f.device, f.account, ps::collation::appended);
  ragged.begin(2);
  ragged.write(0, {1, 2, 3});
  ragged.write(1, {4});
  ragged.finish(2, 2, false);
  CHECK(ragged.all(2) == std::vector<std::int16_t>{1, 2, 3, 4});
  shorts padded(f.device, f.account, ps::collation::padded);
  padded.begin(2);
  padded.write(0, {1, 2, 3});
  padded.write(1, {4});
  padded.finish(2, 2, false);
  CHECK(padded.all(2) == std::vector<std::int16_t>{1, 2, 3, 4, 0, 0});
  CHECK(padded.shape() == ps::extents(2, 3).drop_front());
}

TEST_CASE("run/flexible_values: rows are copied between blocks from any place") {
  fixture f;
  shorts from(f.device, f.account, ps::collation::stacked), to(f.device, f.account, ps::collation::stacked);
  for (int round = 0; round < 2; ++round) {
    from.begin(3);
    for (std::int16_t i = 0; i < 3; ++i)
      from.write(static_cast<std::size_t>(i), {i, static_cast<std::int16_t>(i + 10)});
    if (round == 1) from.finish(3, 3, false);
    to.begin(2);
    to.copy(0, from, 1, 2);
    to.finish(2, 2, false);
    CHECK(to.all(2) == std::vector<std::int16_t>{1, 11, 2, 12});
    if (round == 0) from.finish(3, 3, false);
  }
}

TEST_CASE("run/flexible_values: an odd shape is the failure of its slot, and memory is accounted for") {
  fixture f;
  {
    shorts values(f.device, f.account, ps::collation::stacked);
    values.begin(3);
    values.write(0, {1});
    values.write(1, {2, 2});
    values.write(2, {3, 3});
    bool thrown = false;
    try {
      values.finish(3, 3, false);
    } catch (const ps::slot_error& e) {
      thrown = true;
      CHECK(e.slot == 1);
      CHECK(e.what.code() == ps::errc::shape);
    }
    CHECK(thrown);
    values.choose_lead(3);
    try {
      values.finish(3, 3, true);
    } catch (const ps::slot_error& e) {
      CHECK(e.slot == 0);  // the other two slots share a shape
    }
    values.blank(0);
    values.finish(3, 3, true);
    CHECK(values.all(3) == std::vector<std::int16_t>{0, 0, 2, 2, 3, 3});
    CHECK(values.held() == f.account.bytes);
    values.release();
    CHECK(values.held() == 0);
  }
  CHECK(f.account.bytes == 0);
}

}  // namespace flexible_values_test
