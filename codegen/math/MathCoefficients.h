//===- MathCoefficients.h - Polynomials of the elementary functions ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Written by fit_coefficients.py; change that file instead. Lowest degree first.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_MATH_MATHCOEFFICIENTS_H
#define TEGULA_CODEGEN_MATH_MATHCOEFFICIENTS_H

#include <cstdint>

namespace tegula::coefficients {
// clang-format off

/// (e^r - 1 - r)/r^2 in r, |r| <= ln(2)/2; weighted error 2^-27.7.
inline constexpr float expTailF32[] = {
    0x1.fffffc0000000p-2, 0x1.55548a0000000p-3, 0x1.5559160000000p-5, 0x1.123fc60000000p-7,
    0x1.6a1a720000000p-10};
/// (e^r - 1 - r)/r^2 in r, |r| <= ln(2)/2, relative to e^r - 1; weighted error 2^-28.7.
inline constexpr float expm1TailF32[] = {
    0x1.0000000000000p-1, 0x1.5555540000000p-3, 0x1.5554aa0000000p-5, 0x1.11118e0000000p-7,
    0x1.6d78da0000000p-10, 0x1.a0335c0000000p-13};
/// (2^r - 1)/r in r, |r| <= 1/2; weighted error 2^-25.9.
inline constexpr float exp2TailF32[] = {
    0x1.62e4300000000p-1, 0x1.ebfbdc0000000p-3, 0x1.c6aee60000000p-5, 0x1.3b2d520000000p-7,
    0x1.5f40140000000p-10, 0x1.41fb1e0000000p-13};
/// (log(1+f) - f + f^2/2)/f^3 in f, 1+f in [sqrt(1/2), sqrt(2)]; weighted error 2^-28.0.
inline constexpr float logTailF32[] = {
    0x1.5555460000000p-2, -0x1.0000060000000p-2, 0x1.99a4f60000000p-3, -0x1.555ccc0000000p-3,
    0x1.23322e0000000p-3, -0x1.fc07c20000000p-4, 0x1.e728800000000p-4, -0x1.defff80000000p-4,
    0x1.14ca340000000p-4};
/// (sin r - r)/r^3 in r^2, |r| <= pi/4; weighted error 2^-32.5.
inline constexpr float sinTailF32[] = {
    -0x1.5555560000000p-3, 0x1.1111740000000p-7, -0x1.a058e20000000p-13, 0x1.7bf0a80000000p-19};
/// (cos r - 1 + r^2/2)/r^4 in r^2, |r| <= pi/4; weighted error 2^-33.1.
inline constexpr float cosTailF32[] = {
    0x1.55554a0000000p-5, -0x1.6c0c1a0000000p-10, 0x1.99e0f80000000p-16};
/// (tanh x - x)/x^3 in x^2, |x| <= 0.55; weighted error 2^-29.6.
inline constexpr float tanhTailF32[] = {
    -0x1.55554a0000000p-2, 0x1.110cd80000000p-3, -0x1.b918820000000p-5, 0x1.58a54a0000000p-6,
    -0x1.9777f20000000p-8};
/// erf(x)/x - 1 in x^2, |x| <= 1; weighted error 2^-28.6.
inline constexpr float erfNearF32[] = {
    0x1.06eba80000000p-3, -0x1.8127400000000p-2, 0x1.ce2d6e0000000p-4, -0x1.b803560000000p-6,
    0x1.54750a0000000p-8, -0x1.a8e2e20000000p-11, 0x1.6566580000000p-14, -0x1.f9c0880000000p-20};
/// -log(1 - erf(x)) in x, 1 <= x <= 4; weighted error 2^-34.5.
inline constexpr float erfFarF32[] = {
    -0x1.9135aa0000000p-13, 0x1.212d200000000p+0, 0x1.4430c80000000p-1, 0x1.bc41a80000000p-4,
    -0x1.9d86d00000000p-6, 0x1.1481520000000p-8, -0x1.d31e180000000p-12, 0x1.76e5fa0000000p-16,
    -0x1.81cee20000000p-25};
/// erf(x)/x - 1 in x^2, |x| <= 1; weighted error 2^-24.5.
inline constexpr float erfNearShort[] = {
    0x1.06eba20000000p-3, -0x1.8126740000000p-2, 0x1.ce09000000000p-4, -0x1.b59d940000000p-6,
    0x1.421db40000000p-8, -0x1.268b300000000p-11};
/// log2(1 - erf(x)) in x, 1 <= x <= 4; weighted error 2^-29.6.
inline constexpr float erfFarShort[] = {
    -0x1.c68ef80000000p-12, -0x1.a053de0000000p+0, -0x1.d72dd40000000p-1, -0x1.314b220000000p-3,
    0x1.034d040000000p-5, -0x1.1908540000000p-8, 0x1.1da2cc0000000p-12};
/// (e^r - 1 - r)/r^2 in r, |r| <= ln(2)/2; weighted error 2^-59.9.
inline constexpr double expTailF64[] = {
    0x1.0000000000000p-1, 0x1.555555555555cp-3, 0x1.55555555554fap-5, 0x1.111111110e95ep-7,
    0x1.6c16c16c32603p-10, 0x1.a01a01b4ab574p-13, 0x1.a01a0130244bfp-16, 0x1.71dded27bc6a5p-19,
    0x1.27e5bbb0719a2p-22, 0x1.af7123278a8a7p-26, 0x1.1e39ae79d907bp-29};
/// (e^r - 1 - r)/r^2 in r, |r| <= ln(2)/2, relative to e^r - 1; weighted error 2^-59.4.
inline constexpr double expm1TailF64[] = {
    0x1.0000000000000p-1, 0x1.5555555555555p-3, 0x1.5555555555559p-5, 0x1.1111111111104p-7,
    0x1.6c16c16c14bcap-10, 0x1.a01a01a0211dep-13, 0x1.a01a01ae5f737p-16, 0x1.71de3a3bfdd3ap-19,
    0x1.27e4ca9a381b7p-22, 0x1.ae649c0900a3ep-26, 0x1.1f8dd45777d2cp-29, 0x1.6128385965d4cp-33};
/// (2^r - 1)/r in r, |r| <= 1/2; weighted error 2^-55.6.
inline constexpr double exp2TailF64[] = {
    0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58fp-3, 0x1.c6b08d704a0cfp-5, 0x1.3b2ab6fba4e20p-7,
    0x1.5d87fe78a25c1p-10, 0x1.430912f8842d8p-13, 0x1.ffcbfc752d1e2p-17, 0x1.62c021e1677b6p-20,
    0x1.b524dc90d6854p-24, 0x1.e4d06e9b7252fp-28, 0x1.ea028c97dbe73p-32, 0x1.c2cdcd3017927p-36};
/// (2 atanh(s) - 2s)/s^3 in s^2, |s| <= 3 - 2 sqrt(2); weighted error 2^-65.3.
inline constexpr double atanhTailF64[] = {
    0x1.5555555555555p-1, 0x1.9999999999d4ap-2, 0x1.2492492432a5dp-2, 0x1.c71c725534005p-3,
    0x1.745cde5b094bcp-3, 0x1.3b20c5bd4897ep-3, 0x1.0f58547bd8483p-3, 0x1.0f9ab50077de9p-3};
/// (sin r - r)/r^3 in r^2, |r| <= pi/4; weighted error 2^-63.2.
inline constexpr double sinTailF64[] = {
    -0x1.5555555555555p-3, 0x1.111111111106ap-7, -0x1.a01a019ffeb4ap-13, 0x1.71de3a346bbe7p-19,
    -0x1.ae642dad9ae7ap-26, 0x1.610ad175698a6p-33, -0x1.a09f96d1b51a2p-41};
/// (cos r - 1 + r^2/2)/r^4 in r^2, |r| <= pi/4; weighted error 2^-63.9.
inline constexpr double cosTailF64[] = {
    0x1.555555555554ap-5, -0x1.6c16c16c14dc4p-10, 0x1.a01a019c5159ep-16, -0x1.27e4f7c23492dp-22,
    0x1.1ee9b9e1cec80p-29, -0x1.8f941f1886b51p-37};
/// (tanh x - x)/x^3 in x^2, |x| <= 0.55; weighted error 2^-64.9.
inline constexpr double tanhTailF64[] = {
    -0x1.5555555555555p-2, 0x1.111111111107fp-3, -0x1.ba1ba1ba10baap-5, 0x1.664f487f7c907p-6,
    -0x1.226e34cb52031p-7, 0x1.d6d3afe04a3c1p-9, -0x1.7da0ea5de090fp-10, 0x1.353787c6f0549p-11,
    -0x1.f32c451860c10p-13, 0x1.8813ef42d2916p-14, -0x1.0df7af60b671ap-15, 0x1.c53f4e8094380p-18,
    0x1.0d14eb32283efp-22};
/// erf(x)/x - 1 in x^2, |x| <= 1; weighted error 2^-56.0.
inline constexpr double erfNearF64[] = {
    0x1.06eba8214db69p-3, -0x1.812746b037a2cp-2, 0x1.ce2f21a046dc0p-4, -0x1.b82ce3141eb1ep-6,
    0x1.565bcd60cd265p-8, -0x1.c02dc823d6bc3p-11, 0x1.f9a65ad59e6cdp-14, -0x1.f52b258e7186ep-17,
    0x1.c09e6f32797d5p-20, -0x1.bb45b2e954068p-23, 0x1.1c0b6e6a50a2bp-24, -0x1.765817ee9d018p-25,
    0x1.8a6ca56ea0e33p-26, -0x1.f42380714983bp-28, 0x1.1bf023a2541b9p-30};
/// -log(1 - erf(x)) in x - 1.375, |x - 1.375| <= 3/8; weighted error 2^-54.5.
inline constexpr double erfFarF64_0[] = {
    0x1.7ada518762e96p+1, 0x1.a4b9215b05af4p+1, 0x1.c3c5b5daf2fd8p-1, 0x1.dbab73ddbc44bp-6,
    -0x1.c0916857601eap-8, 0x1.75de4728759ffp-10, -0x1.eacf195ba40ccp-13, 0x1.32c58dfc68720p-16,
    0x1.8f8f6319b454ap-18, -0x1.df387f6416bd4p-19, 0x1.2c6ebbcd36bb2p-20, -0x1.f19958709e67fp-23};
/// -log(1 - erf(x)) in x - 2.125, |x - 2.125| <= 3/8; weighted error 2^-59.0.
inline constexpr double erfFarF64_1[] = {
    0x1.7ba0958d1a85dp+2, 0x1.29970851d142ap+2, 0x1.dbf5191b9ffc9p-1, 0x1.e49bac17e772cp-7,
    -0x1.9c00ef3295ed4p-9, 0x1.4e3ae180d5cedp-11, -0x1.ef394d6e98428p-14, 0x1.3953d5f0bb859p-16,
    -0x1.16c5b0d1a51d4p-19, -0x1.ff6c109e7f84ap-26, 0x1.da913c29fbe34p-24,
    -0x1.7c6f59cbba77bp-25};
/// -log(1 - erf(x)) in x - 2.875, |x - 2.875| <= 3/8; weighted error 2^-61.4.
inline constexpr double erfFarF64_2[] = {
    0x1.3e509869b06f9p+3, 0x1.84251596369bdp+2, 0x1.e8b1fc6a64611p-1, 0x1.0a5c5399fcd20p-7,
    -0x1.8dcbb941df4a5p-10, 0x1.261544c10628dp-12, -0x1.a1bdacbdc22dep-15, 0x1.154ba533e3a23p-17,
    -0x1.4a47ddb1da709p-20, 0x1.41cd2699a5c30p-23, -0x1.47428a60702f9p-27,
    -0x1.4c9eb6e8ed88ep-29};
/// -log(1 - erf(x)) in x - 3.625, |x - 3.625| <= 3/8; weighted error 2^-68.3.
inline constexpr double erfFarF64_3[] = {
    0x1.e12566437a3dap+3, 0x1.e0838021d1055p+2, 0x1.eff0bcde7b800p-1, 0x1.3b49aafd2714dp-8,
    -0x1.9ca8d6e261455p-11, 0x1.1118bbd906027p-13, -0x1.641eef9132abap-16, 0x1.c13f97fd00a81p-19,
    -0x1.0d20009600862p-21, 0x1.2a49c70f4949bp-24, -0x1.22b14749bc77dp-27, 0x1.aa33a75754900p-31};
/// -log(1 - erf(x)) in x - 4.375, |x - 4.375| <= 3/8; weighted error 2^-76.3.
inline constexpr double erfFarF64_4[] = {
    0x1.536a7e6559565p+4, 0x1.1ef96a445fb93p+3, 0x1.f45c0d7893875p-1, 0x1.8db8d1545b286p-9,
    -0x1.caffa37b0ac29p-12, 0x1.0f782fc2f6115p-14, -0x1.4115edeb43bd4p-17, 0x1.76076ed6f591cp-20,
    -0x1.a7f0243a6032ap-23, 0x1.cd67750f94f26p-26, -0x1.db636e01005c1p-29, 0x1.dc012ed8e070cp-32};
/// -log(1 - erf(x)) in x - 5.125, |x - 5.125| <= 3/8; weighted error 2^-87.9.
inline constexpr double erfFarF64_5[] = {
    0x1.c7d8600f5eb0ep+4, 0x1.4e06ae4f54b51p+3, 0x1.f737eb7fba16ep-1, 0x1.08757a6e5bd25p-9,
    -0x1.0f71dca8aaffep-12, 0x1.202a0558c2cd3p-15, -0x1.34d50e085e2e2p-18, 0x1.4987203f69bf7p-21,
    -0x1.5aa6710ac8a08p-24, 0x1.644e957f0f640p-27, -0x1.638fc8d32e9adp-30, 0x1.70eab9c604ff4p-33};
/// -log(1 - erf(x)) in x - 5.875, |x - 5.875| <= 3/8; weighted error 2^-95.3.
inline constexpr double erfFarF64_6[] = {
    0x1.26fb45bf5cfffp+5, 0x1.7d4ca25293515p+3, 0x1.f928ec52852d3p-1, 0x1.6f5886ca01c1bp-10,
    -0x1.5258b25db4fe8p-13, 0x1.445f2b61ef54bp-16, -0x1.3c04aabcacb20p-19, 0x1.34ba7a4397624p-22,
    -0x1.2bcbd94fe2e1bp-25, 0x1.1f4c182fd1f23p-28, -0x1.0e6ee8aa15189p-31, 0x1.115156972c4c2p-34};
/// (atan x - x)/x^3 in x^2, |x| <= tan(pi/8); weighted error 2^-30.3.
inline constexpr float atanTailF32[] = {
    -0x1.5555480000000p-2, 0x1.9990fa0000000p-3, -0x1.23a8bc0000000p-3, 0x1.b129920000000p-4,
    -0x1.ede17a0000000p-5};
/// (asin x - x)/x^3 in x^2, |x| <= 1/2; weighted error 2^-31.6.
inline constexpr float asinTailF32[] = {
    0x1.55554c0000000p-3, 0x1.3338aa0000000p-4, 0x1.6ca7da0000000p-5, 0x1.04cd300000000p-5,
    0x1.d589540000000p-7, 0x1.349cea0000000p-5};
/// (sinh x - x)/x^3 in x^2, |x| <= 1; weighted error 2^-31.5.
inline constexpr float sinhTailF32[] = {
    0x1.5555560000000p-3, 0x1.1110e40000000p-7, 0x1.a01fc40000000p-13, 0x1.75f06c0000000p-19};
/// (atan x - x)/x^3 in x^2, |x| <= tan(pi/8); weighted error 2^-58.5.
inline constexpr double atanTailF64[] = {
    -0x1.555555555553bp-2, 0x1.999999999537ap-3, -0x1.249249228c12dp-3, 0x1.c71c70d84e63ap-4,
    -0x1.745cf73e0fc2ap-4, 0x1.3b10fb281baf5p-4, -0x1.10ea57f2a488fp-4, 0x1.defaa5d875a21p-5,
    -0x1.9c731285a1d93p-5, 0x1.36dc061b208f4p-5, -0x1.233938e7e4974p-6};
/// (asin x - x)/x^3 in x^2, |x| <= 1/2; weighted error 2^-59.4.
inline constexpr double asinTailF64[] = {
    0x1.5555555555579p-3, 0x1.333333332dcddp-4, 0x1.6db6db7247197p-5, 0x1.f1c71a80c9645p-6,
    0x1.6e8be12044ff5p-6, 0x1.1c49c7ccd314bp-6, 0x1.ca2351b5992d3p-7, 0x1.75675bdeaf59ap-7,
    0x1.61e03563118b6p-7, 0x1.dcb77ee806665p-9, 0x1.664617ae2c5cfp-6, -0x1.5b86fea82078cp-6,
    0x1.0c4e5c1bc48b2p-5};
/// (sinh x - x)/x^3 in x^2, |x| <= 1; weighted error 2^-63.2.
inline constexpr double sinhTailF64[] = {
    0x1.5555555555555p-3, 0x1.11111111111bcp-7, 0x1.a01a019ffcbf8p-13, 0x1.71de3a7c2c909p-19,
    0x1.ae641db6c3688p-26, 0x1.6154dd1295505p-33, 0x1.7e7a14259609ep-41, 0x1.b264f95652853p-45,
    -0x1.69e8ac515dc22p-47};
/// (1 + 2x) exp(x^2) erfc(x) in t = (x - 4)/(x + 4), 1/2 <= x <= 28; weighted error 2^-54.3.
inline constexpr double erfcFarF64[] = {
    0x1.3ba5916e9fd7fp+0, -0x1.1df1ad154a28ep-3, 0x1.f7f5df66fd7acp-7, 0x1.16ecefcfa5393p-4,
    -0x1.9ddb23c3e9055p-4, 0x1.7fee004e125cep-4, -0x1.0fb06dfe4a129p-4, 0x1.3079edf6810f9p-5,
    -0x1.09623884ebf10p-6, 0x1.49c67286d37bdp-8, -0x1.8d4a9a04f5d6fp-11, -0x1.a1df260ad8cfap-13,
    0x1.3be03e6febb3ep-13, -0x1.99592f0749e93p-16, -0x1.788494aaa05b2p-17, 0x1.7f27eb1a13686p-18,
    0x1.396defe591869p-22, -0x1.bb0c4af42b410p-21, 0x1.4b01091e26921p-24, 0x1.d954ef9834071p-24,
    -0x1.520a0e6c8278ap-26, -0x1.f0df23da412edp-27, 0x1.48679685241e5p-29, 0x1.8e31b106c7cf1p-30};
/// lgamma(x)/((x - 1)(x - 2)) in x - 1, 1/2 <= x <= 3/2; weighted error 2^-56.5.
inline constexpr double lgammaLowF64[] = {
    0x1.2788cfc6fb619p-1, -0x1.f6465978d46e7p-3, 0x1.3e54520481eb5p-3, -0x1.d7a3e6a8f2b50p-4,
    0x1.79cf9c4c5c39ap-4, -0x1.3cb1f9d36f5cbp-4, 0x1.115549e50fa64p-4, -0x1.e18247211a93dp-5,
    0x1.ae8a9a63b8252p-5, -0x1.8579252f591d6p-5, 0x1.639f27ac64a8ap-5, -0x1.47374a4b49b84p-5,
    0x1.2f0651cdad350p-5, -0x1.1a19ea356495cp-5, 0x1.07e3e0ed74a73p-5, -0x1.f180189644777p-6,
    0x1.d5fc4aa99b307p-6, -0x1.adb6f04072720p-6, 0x1.91bbcfc86cd25p-6, -0x1.ddffa542c1749p-6,
    0x1.e49b2e9c67575p-6, -0x1.ab1c7ce187148p-10, -0x1.178526c79ccd8p-8, -0x1.46dcc92a694a4p-4,
    0x1.6db99002bfbe5p-4, 0x1.67fbe921a8d1ap-4, -0x1.9cc90059a984fp-4, -0x1.da728f044853cp-4,
    0x1.efdfeeda63ec5p-4};
/// lgamma(x)/((x - 1)(x - 2)) in x - 9/4, 3/2 <= x <= 3; weighted error 2^-55.4.
inline constexpr double lgammaHighF64[] = {
    0x1.992dfc9539d9bp-2, -0x1.5fc498795de96p-4, 0x1.9dff298b209a9p-6, -0x1.155963451c74fp-7,
    0x1.8e9b025b97b08p-9, -0x1.2b1a505b739d9p-10, 0x1.ce0fe414089f6p-12, -0x1.6c4b7acb41cf3p-13,
    0x1.23998689fce98p-14, -0x1.d84449d8dd4cfp-16, 0x1.81f183d087f09p-17, -0x1.3dba9cd123a18p-18,
    0x1.072a60c93e46bp-19, -0x1.b644bcff539acp-21, 0x1.6e7b047ae3e91p-22, -0x1.326dd71c649a3p-23,
    0x1.01c3e96435481p-24, -0x1.c594a1a326764p-26, 0x1.82c71c6ba64f0p-27, -0x1.db18faaf6478ap-29,
    0x1.83a2cabdd0a84p-30, -0x1.a661b6c4528a0p-30, 0x1.7318fcd5f1e8bp-31};
/// x (lgamma(x) - (x - 1/2)(log x - 1) - (log(2 pi) - 1)/2) in 1/x^2, x >= 8; weighted error 2^-57.7.
inline constexpr double lgammaTailF64[] = {
    0x1.5555555555555p-4, -0x1.6c16c16c0767ap-9, 0x1.a01a00ad8fdddp-11, -0x1.38121730c4483p-11,
    0x1.b84fb5c84ac28p-11, -0x1.c7450e85d70a9p-10, -0x1.0ec2ec8cb6623p-9, 0x1.0a61f1d7d3b71p-3};
/// x^2 (log x - 1/(2x) - digamma(x)) in 1/x^2, x >= 10; weighted error 2^-64.4.
inline constexpr double digammaTailF64[] = {
    0x1.5555555555555p-4, -0x1.111111110b1fcp-7, 0x1.041040bb6032dp-8, -0x1.1110691bec144p-8,
    0x1.efc2c67750fb3p-8, -0x1.3f4770c225714p-6, -0x1.0c69a9ff3c315p-5, 0x1.72a20860648cdp+1};
/// erfinv(x)/x in w - 5/2, w = -log(1 - x^2) <= 5; weighted error 2^-26.7.
inline constexpr double erfinvNearF64[] = {
    0x1.805c5d1eac09fp+0, 0x1.f91e8c4dfc13ap-3, -0x1.11c4e4caebbbcp-8, -0x1.4867b57a9d569p-10,
    0x1.c9e623270af81p-13, -0x1.4c1e8e04faa4ep-18, -0x1.d0b80f9eb280bp-19, 0x1.f12aa1cbd58c0p-22,
    0x1.8ecb82fe9d8dcp-26, -0x1.2631ef56e0740p-27};
/// erfinv(x)/x in sqrt(w) - 4, 5 <= w <= 37; weighted error 2^-20.9.
inline constexpr double erfinvFarF64[] = {
    0x1.eb7dfb74799c0p+1, 0x1.026e975cc9addp+0, 0x1.4ffc76957daa9p-10, -0x1.d92eb8d1ead81p-11,
    0x1.242698f59cc22p-12, -0x1.19b6e993966dfp-14, 0x1.4583b4e40ed22p-14, -0x1.0c07f3827faadp-14,
    0x1.5039027b5e722p-16, -0x1.071c65b2a2b36p-19};
/// ln(2) in two parts, the first of 16 bits: products with exponents are exact.
inline constexpr float ln2F32[] = {0x1.62e4000000000p-1, 0x1.7f7d1c0000000p-20};
/// ln(2) in two parts, the first of 40 bits.
inline constexpr double ln2F64[] = {0x1.62e42fefa4000p-1, -0x1.8432a1b0e2634p-43};
/// 1/ln(2) in two parts.
inline constexpr float log2eF32[] = {0x1.7154760000000p+0, 0x1.4ae0c00000000p-26};
/// 1/ln(2) in two parts.
inline constexpr double log2eF64[] = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
/// 1/ln(10) in two parts.
inline constexpr float log10eF32[] = {0x1.bcb7b20000000p-2, -0x1.5b235e0000000p-27};
/// 1/ln(10) in two parts.
inline constexpr double log10eF64[] = {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};
/// log10(2) in two parts, the first of 16 bits.
inline constexpr float log10Of2F32[] = {0x1.3442000000000p-2, -0x1.95ec100000000p-19};
/// log10(2) in two parts, the first of 40 bits.
inline constexpr double log10Of2F64[] = {0x1.34413509f8000p-2, -0x1.80433b83b532ap-44};
/// pi/2 in three parts.
inline constexpr float halfPiF32[] = {0x1.921fb60000000p+0, -0x1.777a5c0000000p-25, -0x1.ee59da0000000p-50};
/// pi/2 in three parts.
inline constexpr double halfPiF64[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
/// The first 1280 bits of 2/pi after the binary point.
inline constexpr uint64_t twoOverPi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
};

// clang-format on
} // namespace tegula::coefficients

#endif // TEGULA_CODEGEN_MATH_MATHCOEFFICIENTS_H
