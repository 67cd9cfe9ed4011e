// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/ed25519.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"
#include "support/external_program.hpp"
#include "support/temp_dir.hpp"

#include <openssl/err.h>

#include <concepts>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace ed25519_test {

template <class T>
concept printable = requires(std::ostream& out, const T& value) { out << value; };
static_assert(!printable<ps::signing_key> && !std::equality_comparable<ps::signing_key>);
static_assert(!std::convertible_to<ps::bytes_view, ps::signing_key>, "keys are made on purpose");

std::string bytes(std::string_view hex) {
  std::string made;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    made += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return made;
}
ps::ed25519_signature signature(std::string_view text) {
  ps::ed25519_signature made;
  REQUIRE(text.size() == made.bytes.size());
  for (std::size_t i = 0; i < text.size(); ++i) made.bytes[i] = static_cast<std::byte>(text[i]);
  return made;
}
ps::error error_in(auto&& call) {
  try {
    call();
  } catch (const ps::error& e) {
    return e;
  }
  return {ps::errc::state, "no error"};
}

/// RFC 8032, 7.1.
struct vector {
  std::string_view secret, open, message, made;
};
constexpr vector vectors[] = {{"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                               "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
                               "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
                               "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
                              {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                               "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
                               "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                               "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
                              {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                               "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
                               "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
                               "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"},
                              {"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
                               "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
                               "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                               "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
                               "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589"
                               "09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704"}};

/// The public key of the first vector.
constexpr std::string_view public_pem =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
    "-----END PUBLIC KEY-----\n";
/// Its private key.
constexpr std::string_view private_pem =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";

TEST_CASE("storage/ed25519: keys and signatures are those of RFC 8032") {
  for (const vector& one : vectors) {
    const ps::signing_key secret(ps::bytes_of(bytes(one.secret)));
    const ps::verifying_key open(ps::bytes_of(bytes(one.open)));
    const std::string message = bytes(one.message);
    CHECK(ps::text_of(secret.public_key().bytes()) == bytes(one.open));
    CHECK(ps::text_of(open.bytes()) == bytes(one.open));
    CHECK(secret.sign(ps::bytes_of(message)) == signature(bytes(one.made)));
    CHECK(open.verifies(ps::bytes_of(message), signature(bytes(one.made))));
  }
}

TEST_CASE("storage/ed25519: any changed bit, another key and other bytes are noticed") {
  const vector& one = vectors[2];
  const ps::verifying_key open(ps::bytes_of(bytes(one.open)));
  const std::string message = bytes(one.message), made = bytes(one.made);
  for (std::size_t bit = 0; bit < 8 * made.size(); ++bit) {
    std::string other = made;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    CAPTURE(bit);
    CHECK_FALSE(open.verifies(ps::bytes_of(message), signature(other)));
  }
  for (std::size_t bit = 0; bit < 16; ++bit) {
    std::string other = message;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    CHECK_FALSE(open.verifies(ps::bytes_of(other), signature(made)));
  }
  CHECK_FALSE(open.verifies({}, signature(made)));
  CHECK_FALSE(open.verifies(ps::bytes_of(message), {}));
  CHECK_FALSE(ps::verifying_key(ps::bytes_of(bytes(vectors[0].open)))
                  .verifies(ps::bytes_of(message), signature(made)));
  CHECK(ERR_peek_error() == 0);
}

TEST_CASE("storage/ed25519: keys are read from the PEM format") {
  const ps::verifying_key open = ps::verifying_key::from_pem(public_pem);
  CHECK(ps::text_of(open.bytes()) == bytes(vectors[0].open));
  const ps::signing_key secret = ps::signing_key::from_pem(private_pem);
  CHECK(secret.sign({}) == signature(bytes(vectors[0].made)));
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "key.pem").string();
  std::ofstream(path) << private_pem;
  CHECK(ps::text_of(ps::signing_key::from_file(path).public_key().bytes()) == bytes(vectors[0].open));
  std::ofstream(path) << "a comment\n" << public_pem;
  CHECK(ps::text_of(ps::verifying_key::from_file(path).bytes()) == bytes(vectors[0].open));
  const ps::signing_key copy = secret;
  CHECK(copy.sign({}) == secret.sign({}));
}

TEST_CASE("storage/ed25519: what is no key is an error that says what to do, and shows nothing of it") {
  for (const std::size_t size : {0u, 31u, 33u, 64u}) {
    const std::string text(size, 'k');
    CHECK(error_in([&] { (void)ps::signing_key(ps::bytes_of(text)); }).code() == ps::errc::argument);
    CHECK(error_in([&] { (void)ps::verifying_key(ps::bytes_of(text)); }).code() == ps::errc::argument);
  }
  const std::string rsa_public =  // 512 bits
      "-----BEGIN PUBLIC KEY-----\n"
      "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBALqbHeRLCyOdykC5SDLqI49ArYGYG1mq\n"
      "aH9/GnWjGavZM02fos4lc2w6tCchcUBNtJvGqKwhC5JEnx3RYoSX2ucCAwEAAQ==\n"
      "-----END PUBLIC KEY-----\n";
  for (const std::string& text :
       {std::string(), std::string("MCowBQYDK2Vw"), std::string(private_pem), rsa_public,
        std::string(public_pem).substr(0, 60), std::string(100'000, '-')}) {
    const ps::error e = error_in([&] { (void)ps::verifying_key::from_pem(text); });
    CHECK(e.code() == ps::errc::format);
    CHECK(std::string(e.message()).find("openssl") != std::string::npos);
  }
  for (const std::string& text :
       {std::string(), std::string(public_pem), std::string(private_pem).substr(0, 60)}) {
    const ps::error e = error_in([&] { (void)ps::signing_key::from_pem(text); });
    CHECK(e.code() == ps::errc::format);
    CHECK(std::string(e.message()).find("openssl") != std::string::npos);
    CHECK(std::string(e.message()).find("MC4C") == std::string::npos);
  }
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "key.pem").string();
  CHECK(error_in([&] { (void)ps::verifying_key::from_file(path); }).code() == ps::errc::io);
  std::ofstream(path) << "no key";
  const ps::error e = error_in([&] { (void)ps::signing_key::from_file(path); });
  CHECK(e.code() == ps::errc::format);
  CHECK(e.file() == path);
  std::ofstream(path) << std::string(100'000, 'x');
  CHECK(error_in([&] { (void)ps::verifying_key::from_file(path); }).file() == path);
  CHECK(ERR_peek_error() == 0);
}

TEST_CASE("storage/ed25519: threads share a key") {
  const ps::signing_key secret = ps::signing_key::from_pem(private_pem);
  const ps::verifying_key open = secret.public_key();
  std::vector<int> right(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < right.size(); ++i)
    threads.emplace_back([&, i] {
      const ps::signing_key mine = secret;
      for (int n = 0; n < 20; ++n) {
        const std::string text = std::to_string(n);
        right[i] += open.verifies(ps::bytes_of(text), mine.sign(ps::bytes_of(text))) ? 1 : 0;
      }
    });
  for (std::thread& one : threads) one.join();
  CHECK(right == std::vector<int>(4, 20));
}

TEST_CASE("storage/ed25519: the program openssl verifies our signatures, and we verify its") {
  if (!penstock_test::have_program("openssl", "openssl version")) return;
  const penstock_test::temp_dir folder;
  const std::string at = "cd '" + folder.path().string() + "' && ";
  const auto run = [&](const std::string& command) {
    return penstock_test::run_program(at + command).status == 0;
  };
  const auto read = [&](const char* name) {
    std::ifstream in(folder / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  REQUIRE(run("openssl genpkey -algorithm ed25519 -out key.pem"));
  REQUIRE(run("openssl pkey -in key.pem -pubout -out public.pem"));
  const std::string text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.tar\n";
  std::ofstream(folder / "list", std::ios::binary) << text;
  REQUIRE(run("openssl pkeyutl -sign -rawin -inkey key.pem -in list -out list.sig"));
  const auto open = ps::verifying_key::from_file((folder / "public.pem").string());
  CHECK(open.verifies(ps::bytes_of(text), signature(read("list.sig"))));

  const auto secret = ps::signing_key::from_file((folder / "key.pem").string());
  CHECK(secret.public_key().bytes() == open.bytes());
  std::ofstream(folder / "ours.sig", std::ios::binary) << ps::text_of(secret.sign(ps::bytes_of(text)).bytes);
  const std::string verify = "openssl pkeyutl -verify -rawin -pubin -inkey public.pem -sigfile ours.sig -in ";
  CHECK(run(verify + "list"));
  std::ofstream(folder / "other", std::ios::binary) << text << "\n";
  CHECK_FALSE(run(verify + "other"));

  // encrypted with a passphrase, which nobody is asked for
  REQUIRE(run("openssl pkey -in key.pem -aes256 -passout pass:secret -out locked.pem"));
  const ps::error e = error_in([&] { (void)ps::signing_key::from_file((folder / "locked.pem").string()); });
  CHECK(e.code() == ps::errc::format);
  CHECK(std::string(e.message()).find("passphrase") != std::string::npos);
  REQUIRE(run("openssl genpkey -algorithm x25519 -out other.pem"));
  CHECK(std::string(
            error_in([&] { (void)ps::signing_key::from_file((folder / "other.pem").string()); }).message())
            .find("another algorithm") != std::string::npos);
}

}  // namespace ed25519_test
