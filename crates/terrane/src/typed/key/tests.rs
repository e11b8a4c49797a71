//! Encoded keys are ordered as the keys are, are decoded again, and bytes of any kind are a key or none.

use std::cmp::Ordering;
use std::fmt::Debug;

use proptest::prelude::*;

use super::*;

fn encoded(key: &impl EncodeKey) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode(&mut bytes);
    bytes
}

fn part(key: &impl EncodeKey) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode_part(&mut bytes);
    bytes
}

/// Two keys, at the end and in front of other bytes.
fn check<K: DecodeKey + Debug>(one: &K, other: &K, compare: impl Fn(&K, &K) -> Ordering) {
    let expected = compare(one, other);
    assert_eq!(encoded(one).cmp(&encoded(other)), expected, "{one:?} and {other:?}");
    for (behind, beside) in [(&[0u8, 0][..], &[255u8, 255][..]), (&[255, 255], &[0, 0])] {
        let (one, other) = ([&part(one), behind].concat(), [&part(other), beside].concat());
        assert_eq!(one.cmp(&other), expected.then(behind.cmp(beside)));
    }
    for key in [one, other] {
        let again = K::decode(&encoded(key)).expect("it was encoded");
        assert_eq!(compare(&again, key), Ordering::Equal);
        let with_more = [part(key), vec![7]].concat();
        let mut rest = &with_more[..];
        let again = K::decode_part(&mut rest).expect("it was encoded");
        assert_eq!((compare(&again, key), rest), (Ordering::Equal, &[7][..]));
    }
}

fn ordered<K: DecodeKey + Debug + Ord>((one, other): &(K, K)) {
    check(one, other, K::cmp);
}

/// Bytes among which 0, 1 and 255 are frequent.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..6)
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), any::<char>()], 0..5)
        .prop_map(String::from_iter)
}

proptest! {
    #[test]
    fn numbers_keep_their_order(
        unsigned in any::<(u64, u64)>(), wide in any::<(u128, u128)>(),
        signed in any::<(i64, i64)>(), short in any::<(i8, i8)>(), wide_signed in any::<(i128, i128)>(),
        double in (any::<u64>(), any::<u64>()), single in (any::<u32>(), any::<u32>()),
        letters in any::<(char, char)>(), flags in any::<(bool, bool)>(),
    ) {
        ordered(&unsigned);
        ordered(&wide);
        ordered(&signed);
        ordered(&short);
        ordered(&wide_signed);
        check(&f64::from_bits(double.0), &f64::from_bits(double.1), f64::total_cmp);
        check(&f32::from_bits(single.0), &f32::from_bits(single.1), f32::total_cmp);
        ordered(&letters);
        ordered(&flags);
    }

    #[test]
    fn strings_and_options_keep_their_order(
        bytes in (bytes(), bytes()), text in (text(), text()),
        options in (prop::option::of(bytes()), prop::option::of(bytes())), fixed in any::<([u8; 3], [u8; 3])>(),
    ) {
        ordered(&bytes);
        ordered(&text);
        ordered(&options);
        ordered(&fixed);
    }

    #[test]
    fn tuples_keep_their_order(
        two in ((text(), any::<i16>()), (text(), any::<i16>())),
        turned in ((any::<bool>(), bytes()), (any::<bool>(), bytes())),
        four in ((bytes(), bytes(), prop::option::of(text()), text()), (bytes(), bytes(), prop::option::of(text()), text())),
        nested in (((text(), text()), bytes()), ((text(), text()), bytes())),
    ) {
        ordered(&two);
        ordered(&turned);
        ordered(&four);
        ordered(&nested);
    }

    #[test]
    fn bytes_of_any_kind_are_a_key_or_none(bytes in bytes()) {
        let _ = u64::decode(&bytes);
        if let Some(key) = <(String, Option<i8>, Vec<u8>)>::decode(&bytes) {
            prop_assert_eq!(encoded(&key), bytes.clone());
        }
        if let Some(key) = <(Vec<u8>, String)>::decode(&bytes) {
            prop_assert_eq!(encoded(&key), bytes);
        }
    }
}

#[test]
fn bytes_that_encode_no_key_decode_to_nothing() {
    assert_eq!(bool::decode(&[2]), None);
    assert_eq!(u16::decode(&[1]), None);
    assert_eq!(u16::decode(&[1, 2, 3]), None);
    assert_eq!(char::decode(&0xD800_u32.to_be_bytes()), None, "half of a pair of UTF-16");
    assert_eq!(String::decode(&[255]), None);
    assert_eq!(<(Vec<u8>, u8)>::decode(b"ab\x00"), None, "cut");
    assert_eq!(<(Vec<u8>, u8)>::decode(b"ab\x00\x02\x07"), None, "neither an end nor a byte 0");
    assert_eq!(<(Vec<u8>, u8)>::decode(b"ab"), None, "no end");
    assert_eq!(Option::<u8>::decode(&[0, 0]), None);
    assert_eq!(Option::<u8>::decode(&[]), None);
}
