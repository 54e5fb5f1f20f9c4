#define BOOST_TEST_MODULE draftd
#include <boost/test/included/unit_test.hpp>
