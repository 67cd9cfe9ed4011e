// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3/list_result.hpp>

#include "support/catch.hpp"

#include <penstock/core/error.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace {

namespace ps = penstock;
namespace s3 = penstock::detail::s3;
using penstock_test::contains;

constexpr std::string_view list_head =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
    "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";

std::string list_with(std::string_view inner) {
  std::string body(list_head);
  return body.append(inner).append("</ListBucketResult>");
}
std::string s3_contents(std::string_view name, std::string_view size,
                        std::string_view etag = "&quot;e&quot;") {
  std::string line = "<Contents><Key>";
  return line.append(name)
      .append("</Key><LastModified>2026-11-23T12:00:00.000Z</LastModified><ETag>")
      .append(etag)
      .append("</ETag><Size>")
      .append(size)
      .append("</Size><StorageClass>STANDARD</StorageClass></Contents>");
}
void list_refused(const std::string& body, const std::string& sentence) {
  try {
    (void)s3::read_list_page(body);
    FAIL("the page was taken");
  } catch (const ps::error& e) {
    CHECK_THAT(e.what(), contains(sentence));
    CHECK(e.code() == ps::errc::io);
    CHECK_FALSE(e.recurs());
  }
}

}  // namespace

TEST_CASE("storage/s3/list_result: a page as AWS sends it") {
  const s3::list_page page = s3::read_list_page(list_with(
      "<Name>bucket</Name><Prefix>a/</Prefix><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>/</"
      "Delimiter>"
      "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>1ueG+/=</"
      "NextContinuationToken>" +
      s3_contents("a/one+two%2B%C3%A4.tar", "434234", "&quot;fba9dede5f27731c9771645a39863328-7&quot;") +
      s3_contents("a/%00%0A", "0", "") + "<CommonPrefixes><Prefix>a/b%20c/</Prefix></CommonPrefixes>"));
  REQUIRE(page.objects.size() == 2);
  CHECK(page.objects[0].key == "a/one two+\xC3\xA4.tar");
  CHECK(page.objects[0].size == 434'234);
  CHECK(page.objects[0].etag == "\"fba9dede5f27731c9771645a39863328-7\"");
  CHECK(page.objects[1].key == std::string("a/\0\n", 4));
  CHECK(page.objects[1].size == 0);
  CHECK(page.objects[1].etag.empty());
  CHECK(page.next_token == "1ueG+/=");
}

TEST_CASE("storage/s3/list_result: what other stores leave out, and keys that are not encoded") {
  const s3::list_page page = s3::read_list_page(
      "<ListBucketResult><Contents><Size>9223372036854775807</Size><Key>a+%41&lt;&#x26;<![CDATA[<b>]]></"
      "Key></Contents>"
      "<Contents><Key> </Key><Size>1</Size></Contents></ListBucketResult>");
  REQUIRE(page.objects.size() == 2);
  CHECK(page.objects[0].key == "a+%41<&<b>");
  CHECK(page.objects[0].size == 9'223'372'036'854'775'807u);
  CHECK(page.objects[1].key == " ");
  CHECK(page.next_token.empty());
  CHECK(s3::read_list_page("<ListBucketResult/>").objects.empty());
}

TEST_CASE("storage/s3/list_result: malformed pages are errors that may not come again") {
  list_refused("", "is not the XML of a store");
  list_refused("<html><body>502</body></html>", "another root than <ListBucketResult>");
  list_refused("{\"a\": 1}", "is not the XML of a store");
  list_refused(list_with("<Contents><Size>1</Size></Contents>"), "has no <Key> in its <Contents>");
  list_refused(list_with("<Contents><Key>k</Key></Contents>"), "has no <Size>");
  for (const char* const size :
       {"-1", "1.0", "0x10", " 1", "1 ", "9223372036854775808", "18446744073709551616", "1e3"})
    list_refused(list_with(s3_contents("k", size)), "a <Size> that is no number of bytes");
  list_refused(list_with("<EncodingType>base64</EncodingType>"), "encodes its names");
  for (const char* const name : {"%", "%4", "%zz", "a%2"})
    list_refused(list_with("<EncodingType>url</EncodingType>" + s3_contents(name, "1")),
                 "'%' without two digits");
  list_refused(list_with("<IsTruncated>true</IsTruncated>"), "no <NextContinuationToken>");
  list_refused(list_with("<IsTruncated>maybe</IsTruncated>"), "neither true nor false");
  list_refused(list_with(s3_contents("k", "1", "&#13;&#10;x: y")), "control characters in an <ETag>");
  const std::string whole = list_with(s3_contents("k", "1") + s3_contents("l", "2"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK_THROWS_AS(s3::read_list_page(std::string_view(whole).substr(0, length)), ps::error);
  }
}

TEST_CASE("storage/s3/list_result: hostile pages cost no memory to speak of") {
  std::string bomb = "<!DOCTYPE lolz [<!ENTITY a \"aaaaaaaaaa\">";
  for (char c = 'b'; c < 'k'; ++c)
    bomb += std::string("<!ENTITY ") + c + " \"&" + static_cast<char>(c - 1) + ";&" +
            static_cast<char>(c - 1) + ";\">";
  list_refused(bomb + "]><ListBucketResult>&j;</ListBucketResult>", "declares a document type");
  CHECK(s3::read_list_page(list_with(s3_contents("&lol;", "1"))).objects.at(0).key == "&lol;");
  list_refused(list_with(std::string(9u << 20, ' ')), "larger than 8 MiB");
  std::string deep;
  for (int i = 0; i < 150'000; ++i) deep += "<a>";
  list_refused(list_with(deep), "is not the XML of a store");
  deep += deep;
  list_refused(list_with(deep), "more than 200,000 tags");
  std::string closed;
  for (int i = 0; i < 90'000; ++i) closed += i < 45'000 ? "<a>" : "</a>";
  CHECK(s3::read_list_page(list_with(closed)).objects.empty());
  list_refused(list_with(std::string("<Name>\0</Name>", 14)), "has a zero byte");
  std::string attributes = "<Name";
  for (int i = 0; i < 100'000; ++i) attributes += " a='b'";
  CHECK(s3::read_list_page(list_with(attributes + "/>")).objects.empty());
  for (int i = 0; i < 600'000; ++i) attributes += " a='b'";
  list_refused(list_with(attributes + "/>"), "more than 600,000 attributes");
}

TEST_CASE("storage/s3/list_result: a listing goes through pages, empty ones too, and asks for the next") {
  s3::object_listing all("train/");
  const auto asked = [&] {
    std::string line;
    for (const auto& one : all.query()) line += one.name + "=" + one.value + ";";
    return line;
  };
  CHECK(asked() == "list-type=2;encoding-type=url;prefix=train/;");
  const auto more = [](const std::string& token) {
    return "<IsTruncated>true</IsTruncated><NextContinuationToken>" + token + "</NextContinuationToken>";
  };
  CHECK(all.accept(list_with(s3_contents("train/0", "1") + more("t&amp;1"))).objects.size() == 1);
  CHECK(asked() == "list-type=2;encoding-type=url;prefix=train/;continuation-token=t&1;");
  CHECK(all.accept(list_with("<KeyCount>0</KeyCount>" + more("t2"))).objects.empty());
  CHECK_FALSE(all.done());
  CHECK_THROWS_WITH(all.accept(list_with(more("t2"))), contains("does not end"));
  CHECK_THROWS_WITH(all.accept(list_with(s3_contents("other/0", "1"))),
                    contains("does not begin with 'train/'"));
  CHECK(all.accept(list_with(s3_contents("train/1", "1"))).objects.size() == 1);
  CHECK(all.done());
}

TEST_CASE("storage/s3/list_result: a list of ever more empty pages ends") {
  ps::detail::s3::object_listing list("a");
  const auto page = [&](int number, const char* name) {
    return list.accept(
        std::string("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>") +
        std::to_string(number) + "</NextContinuationToken>" + name + "</ListBucketResult>");
  };
  for (int i = 0; i < 1000; ++i) CHECK(page(i, "").objects.empty());
  CHECK(page(1000, "<Contents><Key>a1</Key><Size>1</Size></Contents>").objects.size() == 1);
  for (int i = 2000; i < 3000; ++i) CHECK(page(i, "").objects.empty());
  CHECK_THROWS_WITH(page(3000, ""), contains("does not end: 1001 pages in a row"));
}
