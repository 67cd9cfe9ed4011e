// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/libtorch.hpp>

#include <penstock/core/half.hpp>
#include <penstock/core/record.hpp>
#include <penstock/device/image/operations.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/integration/from_dlpack.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <ATen/DLConvertor.h>
#include <torch/nn.h>

#include "../../examples/tiny_transformer_libtorch.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/packed_attention.hpp"

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

using sample = ps::record<ps::field<"x", std::array<float, 3>>, ps::field<"y", std::int64_t>>;

sample numbered(std::uint64_t i) {
  const auto f = static_cast<float>(i);
  return sample(std::array<float, 3>{f, 2 * f, 3 * f}, static_cast<std::int64_t>(i));
}
auto numbers(std::uint64_t count) { return ps::generated(count, numbered); }

template <class T>
torch::ScalarType type_of() {
  auto run = (ps::generated(2, [](std::uint64_t i) { return static_cast<T>(i); }) | ps::batch(2)).open();
  auto batch = run.next();
  const torch::Tensor view = ps::as_tensor(batch->values()), owner = ps::as_tensors(*batch);
  CHECK(view.scalar_type() == owner.scalar_type());
  CHECK(view.data_ptr() == owner.data_ptr());
  return owner.scalar_type();
}

}  // namespace

TEST_CASE("integration/libtorch: a view as a tensor, in the batch's own memory") {
  auto run = (numbers(40) | ps::batch(10) | ps::workers(1)).open();
  auto batch = run.next();
  const torch::Tensor x = ps::as_tensor(ps::get<"x">(*batch)), y = ps::as_tensor(ps::get<"y">(*batch));
  CHECK(x.data_ptr() == ps::get<"x">(*batch).data());
  CHECK(x.sizes() == torch::IntArrayRef({10, 3}));
  CHECK(y.sizes() == torch::IntArrayRef({10}));
  CHECK(x.equal(torch::arange(10).unsqueeze(1).mul(torch::tensor({1.0f, 2.0f, 3.0f}))));
  CHECK(y.sum().item<std::int64_t>() == 45);
  x.mul_(2);
  CHECK(ps::get<"x">(*batch)(3, 1) == 12);
}

TEST_CASE("integration/libtorch: tensors that hold the batch outlive batch, run and plan") {
  std::vector<torch::Tensor> kept;
  {
    auto run = (numbers(30) | ps::batch(10) | ps::prefetch(4) | ps::workers(2)).open();
    for (auto&& b : run.epoch(0)) {
      auto [x, y] = ps::as_tensors(b);
      kept.push_back(y);
      CHECK(x.size(0) == 10);
    }
  }
  CHECK(torch::cat(kept).equal(torch::arange(30)));
  std::jthread([&] { kept.clear(); }).join();
}

TEST_CASE("integration/libtorch: memory returns when the last tensor goes") {
  auto run = (numbers(4000) | ps::batch(10) | ps::prefetch(2) | ps::workers(1)).open();
  std::size_t batches = 0;
  torch::Tensor last;
  for (auto&& b : run.epoch(0)) {
    last = ps::as_tensors<"y">(b);  // frees the one before
    ++batches;
  }
  CHECK(batches == 400);
}

TEST_CASE("integration/libtorch: types") {
  CHECK(type_of<float>() == torch::kFloat);
  CHECK(type_of<double>() == torch::kDouble);
  CHECK(type_of<std::uint8_t>() == torch::kUInt8);
  CHECK(type_of<std::int8_t>() == torch::kChar);
  CHECK(type_of<std::int16_t>() == torch::kShort);
  CHECK(type_of<std::uint16_t>() == torch::kShort);
  CHECK(type_of<std::int32_t>() == torch::kInt);
  CHECK(type_of<std::uint32_t>() == torch::kInt);
  CHECK(type_of<std::int64_t>() == torch::kLong);
  CHECK(type_of<std::uint64_t>() == torch::kLong);
  CHECK(type_of<char>() == torch::kUInt8);
  CHECK(type_of<std::byte>() == torch::kUInt8);
  auto half =
      (ps::generated(2, [](std::uint64_t i) { return ps::half(static_cast<float>(i)); }) | ps::batch(2))
          .open();
  CHECK(ps::as_tensors(*half.next()).equal(torch::arange(2).to(torch::kHalf)));
  auto brain =
      (ps::generated(2, [](std::uint64_t i) { return ps::bfloat16(static_cast<float>(i)); }) | ps::batch(2))
          .open();
  CHECK(ps::as_tensors(*brain.next()).equal(torch::arange(2).to(torch::kBFloat16)));
  auto complex =
      (ps::generated(2, [](std::uint64_t i) { return std::complex<float>(static_cast<float>(i), 1); }) |
       ps::batch(2))
          .open();
  auto batch = complex.next();
  CHECK(ps::as_tensor(batch->values()).scalar_type() == torch::kComplexFloat);
  CHECK(torch::imag(ps::as_tensors(*batch)).sum().item<float>() == 2);
}

TEST_CASE("integration/libtorch: ragged and padded fields") {
  const auto lists =
      ps::generated(3, [](std::uint64_t i) { return std::vector<float>(i + 1, static_cast<float>(i)); });
  auto ragged = (lists | ps::batch(3, ps::ragged)).open();
  const auto r = ps::as_tensors(*ragged.next());
  CHECK(r.values.equal(torch::tensor({0.0f, 1.0f, 1.0f, 2.0f, 2.0f, 2.0f})));
  CHECK(r.offsets.equal(torch::tensor({0, 1, 3, 6}, torch::kLong)));
  auto padded = (lists | ps::batch(3, ps::pad_to_longest)).open();
  const auto p = ps::as_tensors(*padded.next());
  CHECK(p.lengths.equal(torch::tensor({1, 2, 3}, torch::kLong)));
  CHECK(p.mask.scalar_type() == torch::kBool);
  CHECK(p.mask.sum().item<std::int64_t>() == 6);
  CHECK(p.values.masked_select(p.mask).equal(r.values));
}

TEST_CASE("integration/libtorch: a loop as over libtorch's DataLoader") {
  auto run = (numbers(40) | ps::shuffle(ps::seed(3)) | ps::batch(8) | ps::workers(1)).open();
  float sum = 0;
  std::int64_t samples = 0;
  for (int e = 0; e < 2; ++e)
    for (auto& batch : ps::as_examples<"x", "y">(run.epoch(e))) {
      sum += batch.data.select(1, 0).sum().item<float>() -
             static_cast<float>(batch.target.sum().item<std::int64_t>());
      samples += batch.target.size(0);
    }
  CHECK(sum == 0);
  CHECK(samples == 80);
}

TEST_CASE("integration/libtorch: steps of a training") {
  torch::nn::Linear net(3, 1);
  auto run = (numbers(40) | ps::batch(8)).open();
  torch::Tensor loss = torch::zeros({});
  for (auto&& b : run.epoch(0)) loss += net->forward(ps::as_tensor(ps::get<"x">(b))).sum();
  loss.backward();
  CHECK(net->weight.grad().select(1, 0).item<float>() == 780);
}

TEST_CASE("integration/libtorch: a loop written for libtorch's own loader") {
  using labelled = ps::record<ps::field<"image", std::array<float, 4>>, ps::field<"label", std::int64_t>>;
  auto run =
      (ps::generated(64,
                     [](std::uint64_t i) {
                       const auto f = static_cast<float>(i);
                       return labelled(std::array<float, 4>{f, 1, 2, 3}, static_cast<std::int64_t>(i % 2));
                     }) |
       ps::batch(16))
          .open();
  torch::nn::Sequential net(torch::nn::Linear(4, 2), torch::nn::LogSoftmax(1));
  torch::Tensor loss;
  for (auto& batch : ps::as_examples<"image", "label">(run.epoch(0))) {
    const torch::Tensor prediction = net->forward(batch.data);
    loss = torch::nll_loss(prediction, batch.target);
  }
  CHECK(loss.item<float>() > 0);
}

TEST_CASE("integration/libtorch: of a device that copies, both sides") {
  const ps::simulated accelerator;
  auto run = (numbers(8) | ps::batch(8) | ps::pin_and_copy(accelerator) | ps::workers(1)).open();
  auto batch = run.next();
  const auto there = ps::as_tensors(*batch), here = ps::as_host_tensors(*batch);
  CHECK(ps::get<"x">(there).data_ptr() != ps::get<"x">(here).data_ptr());
  CHECK(ps::get<"x">(there).equal(ps::get<"x">(here)));
}

TEST_CASE("integration/libtorch: behind on_device a tensor is what the device made") {
  static constexpr std::array<std::uint8_t, 2 * 4 * 3> pixels{9, 8, 7};
  const auto images = ps::generated(6, [](std::uint64_t) {
    return ps::tensor_view<const std::uint8_t>(pixels.data(), ps::extents(2, 4, 3));
  });
  auto run =
      (images | ps::batch(3) | ps::pin_and_copy(ps::simulated()) | ps::on_device(ps::to_half(), ps::to_chw()))
          .open();
  auto batch = run.next();
  const torch::Tensor there = ps::as_tensors(*batch), here = ps::as_host_tensors(*batch);
  CHECK(there.sizes() == torch::IntArrayRef({3, 3, 2, 4}));
  CHECK(there.dtype() == torch::kHalf);
  CHECK(here.sizes() == torch::IntArrayRef({3, 2, 4, 3}));
  CHECK(there.equal(here.permute({0, 3, 1, 2}).to(torch::kFloat).mul(1 / 255.0f).to(torch::kHalf)));
}

TEST_CASE("integration/libtorch: libtorch's own converters agree, in both directions") {
  auto run = (numbers(10) | ps::batch(10)).open();
  auto batch = run.next();
  auto* const legacy = ps::to_dlpack<"x">(*batch).release_legacy();
  const torch::Tensor theirs = at::fromDLPack(reinterpret_cast<DLManagedTensor*>(legacy));
  CHECK(theirs.equal(ps::as_tensor(ps::get<"x">(*batch))));
  const torch::Tensor made = torch::arange(12, torch::kFloat).reshape({3, 4}).t();  // not dense
  const auto plan = ps::from(ps::from_dlpack<float>(at::toDLPack(made))) | ps::batch(4);
  const auto values = values_of(plan);
  CHECK(torch::tensor(values).reshape({4, 3}).equal(made));
}

TEST_CASE("integration/libtorch: documents of a row, of which one's change changes no output of another") {
  packed_attention::check_attention<tiny_transformer>();
}

TEST_CASE("integration/libtorch: a batch without values") {
  auto run = (ps::generated(2, [](std::uint64_t) { return std::vector<float>(); }) | ps::batch(2)).open();
  auto batch = run.next();
  const torch::Tensor none = ps::as_tensors(*batch);
  CHECK(none.sizes() == torch::IntArrayRef({2, 0}));
}
