#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/data/image_files: small GIF, AVIF and TIFF files, and JPEG, PNG and WebP files that are turned by their
metadata, each with what Pillow makes of it.

    tools/image_file_oracles.py

NAME.rgba has width and height, 4 bytes each, little-endian, then ImageOps.exif_transpose(image).convert("RGBA") of the
first frame; of TIFF files that tifffile wrote and Pillow reads otherwise, the array that was written. NAME.gray16 has
the values of gray images of 16 bits. Needs Pillow 12 or later with AVIF, numpy, tifffile and imagecodecs, which PyPI
has."""

import io
import os
import struct

import numpy as np
import tifffile
from PIL import Image, ImageOps, PngImagePlugin

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "tests", "data", "image_files")


def picture(height, width, channels, seed=1, smooth=False):
    if smooth:
        y, x = np.mgrid[0:height, 0:width]
        planes = [(x * 5 + y * 3 * (c + 1) + 40 * c) % 256 if c < 3 else 255 - (x * 7) % 256 for c in range(channels)]
        return np.stack(planes, axis=-1).astype(np.uint8)
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def write(name, data):
    with open(os.path.join(FOLDER, name), "wb") as out:
        out.write(data)


def expect(stem, rgba):
    rgba = np.ascontiguousarray(rgba, dtype=np.uint8)
    write(f"{stem}.rgba", struct.pack("<II", rgba.shape[1], rgba.shape[0]) + rgba.tobytes())


def keep(name, data, rgba=None):
    """Writes a file, and what Pillow makes of it, or what is known to be right."""
    write(name, data)
    if rgba is None:
        rgba = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGBA"))
    expect(name.rsplit(".", 1)[0], rgba)


def saved(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def exif_of(orientation):
    exif = Image.Exif()
    exif[274] = orientation
    return exif


def gifs():
    colours = Image.fromarray(picture(19, 23, 3)).quantize(200)
    keep("gif_interlaced.gif", saved(colours, "GIF", interlace=1))
    keep("gif_plain.gif", saved(colours, "GIF", interlace=0))
    keep("gif_transparent.gif", saved(colours, "GIF", transparency=3, interlace=0))
    keep("gif_gray.gif", saved(Image.fromarray(picture(9, 5, 1)[:, :, 0]), "GIF"))
    keep("gif_two_colours.gif", saved(Image.fromarray(picture(9, 17, 1)[:, :, 0] > 99), "GIF"))
    keep("gif_long.gif", saved(Image.fromarray(picture(90, 110, 3)).quantize(256), "GIF", interlace=0))
    other = Image.fromarray(picture(19, 23, 3, seed=2)).quantize(200)
    keep("gif_animated.gif", saved(colours, "GIF", save_all=True, append_images=[other]))
    # Pillow writes first frames that cover the canvas: these are moved on a larger one.
    for stem, transparent in (("gif_offset", None), ("gif_offset_transparent", 7)):
        extra = {} if transparent is None else {"transparency": transparent}
        file = bytearray(saved(colours, "GIF", interlace=0, **extra))
        at = 13 + 3 * (2 << (file[10] & 7))
        while file[at] != 0x2c:  # extensions
            at += 2
            while file[at] != 0:
                at += file[at] + 1
            at += 1
        file[6:10] = struct.pack("<HH", 40, 30)
        file[at + 1:at + 5] = struct.pack("<HH", 5, 4)
        keep(f"{stem}.gif", bytes(file))


def avifs():
    rgb = Image.fromarray(picture(24, 34, 3, smooth=True))
    keep("avif_444.avif", saved(rgb, "AVIF", quality=90, subsampling="4:4:4", speed=8))
    keep("avif_420.avif", saved(rgb, "AVIF", quality=80, subsampling="4:2:0", speed=8))
    keep("avif_gray.avif", saved(rgb.convert("L"), "AVIF", quality=90, speed=8))
    rgba = Image.fromarray(picture(24, 34, 4, smooth=True))
    keep("avif_alpha.avif", saved(rgba, "AVIF", quality=90, subsampling="4:4:4", speed=8))
    for turn in range(1, 9):
        keep(f"avif_turn{turn}.avif", saved(rgb, "AVIF", quality=90, subsampling="4:4:4", exif=exif_of(turn), speed=8))
    other = Image.fromarray(picture(24, 34, 3, seed=5, smooth=True)).rotate(180)
    keep("avif_animated.avif", saved(rgb, "AVIF", save_all=True, append_images=[other], quality=90,
                                     subsampling="4:4:4", speed=8))


def tiffs():
    rgb, rgba = picture(21, 37, 3), picture(21, 37, 4)
    image = Image.fromarray(rgb)
    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
        keep(f"tiff_{compression}.tif", saved(image, "TIFF", compression=compression))
    keep("tiff_alpha.tif", saved(Image.fromarray(rgba), "TIFF"))
    keep("tiff_gray.tif", saved(Image.fromarray(rgb[:, :, 0]), "TIFF", compression="tiff_lzw"))
    keep("tiff_gray_alpha.tif", saved(Image.fromarray(rgba).convert("LA"), "TIFF"))
    keep("tiff_palette.tif", saved(image.quantize(100), "TIFF"))
    keep("tiff_bilevel.tif", saved(Image.fromarray(rgb[:, :, 0] > 120), "TIFF", compression="group4"))
    keep("tiff_pages.tif", saved(image, "TIFF", save_all=True, append_images=[Image.fromarray(rgb[::-1, :, :].copy())]))
    for turn in range(1, 9):
        keep(f"tiff_turn{turn}.tif", saved(image, "TIFF", exif=exif_of(turn)))

    def by_tifffile(stem, array, shown, **options):
        out = io.BytesIO()
        tifffile.imwrite(out, array, **options)
        opaque = np.full(shown.shape[:2] + (1,), 255, np.uint8)
        keep(f"{stem}.tif", out.getvalue(), np.concatenate([shown, opaque], axis=2) if shown.shape[2] == 3 else shown)

    large = picture(70, 53, 3, seed=3)
    by_tifffile("tiff_tiles", large, large, photometric="rgb", tile=(16, 32), compression="deflate", predictor=2)
    by_tifffile("tiff_planes", np.moveaxis(large, 2, 0).copy(), large, photometric="rgb", planarconfig="separate")
    by_tifffile("tiff_plane_tiles", np.moveaxis(large, 2, 0).copy(), large, photometric="rgb", planarconfig="separate",
                tile=(16, 16), compression="lzw")
    by_tifffile("tiff_big_endian", large, large, photometric="rgb", byteorder=">", rowsperstrip=8)
    by_tifffile("tiff_bigtiff", large, large, photometric="rgb", bigtiff=True)
    deep = np.random.default_rng(4).integers(0, 65536, (20, 31, 3), dtype=np.uint16)
    by_tifffile("tiff_rgb16", deep, (deep >> 8).astype(np.uint8), photometric="rgb", byteorder=">")
    gray = deep[:, :, 0].copy()
    three = np.repeat((gray >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    by_tifffile("tiff_gray16", gray, three, photometric="minisblack", compression="deflate", predictor=2)
    write("tiff_gray16.gray16", struct.pack("<II", gray.shape[1], gray.shape[0]) + gray.astype("<u2").tobytes())
    by_tifffile("tiff_white_is_zero", large[:, :, 0].copy(), np.repeat(255 - large[:, :, :1], 3, axis=2),
                photometric="miniswhite")
    real = picture(6, 5, 1)[:, :, 0].astype(np.float32)
    out = io.BytesIO()
    tifffile.imwrite(out, real)
    write("tiff_float.tif", out.getvalue())  # refused


def xmp_of(turn):
    return (f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
            f'<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="{turn}"/></rdf:RDF>'
            f'</x:xmpmeta>').encode()


def profile_of(turn):
    """EXIF as ImageMagick writes it into a text of a PNG."""
    block = exif_of(turn).tobytes()
    lines = [block.hex()[i:i + 72] for i in range(0, 2 * len(block), 72)]
    return "\nexif\n%8d\n%s\n" % (len(block), "\n".join(lines))


def turned():
    image = Image.fromarray(picture(7, 11, 3, smooth=True))

    def png(*texts, exif=None):
        info = PngImagePlugin.PngInfo()
        for key, text, packed in texts:
            if key.startswith("XML"):
                info.add_itxt(key, text, zip=packed)
            else:
                info.add_text(key, text, zip=packed)
        return saved(image, "PNG", pnginfo=info, **({} if exif is None else {"exif": exif}))

    xml, raw = "XML:com.adobe.xmp", "Raw profile type exif"
    keep("png_profile.png", png((raw, profile_of(6), False)))
    keep("png_profile_packed.png", png((raw, profile_of(8), True)))
    keep("png_xmp.png", png((xml, xmp_of(5).decode(), False)))
    keep("png_xmp_packed.png", png((xml, xmp_of(7).decode(), True)))
    keep("png_exif_and_xmp.png", png((xml, xmp_of(7).decode(), False), exif=exif_of(3)))
    keep("png_upright_and_xmp.png", png((xml, xmp_of(7).decode(), False), exif=exif_of(1)))
    keep("png_profile_and_xmp.png", png((raw, profile_of(6), False), (xml, xmp_of(3).decode(), False)))
    for form, ending, options in (("WEBP", "webp", {"lossless": True}), ("JPEG", "jpg", {"quality": 95})):
        keep(f"{ending}_xmp.{ending}", saved(image, form, xmp=xmp_of(6), **options))
        keep(f"{ending}_exif_and_xmp.{ending}", saved(image, form, xmp=xmp_of(6), exif=exif_of(4), **options))
        keep(f"{ending}_upright_and_xmp.{ending}", saved(image, form, xmp=xmp_of(6), exif=exif_of(1), **options))
    frames = [Image.fromarray(picture(24, 32, 4, seed=s, smooth=True)) for s in (1, 2)]
    keep("webp_animated.webp", saved(frames[0], "WEBP", save_all=True, append_images=[frames[1].rotate(90)], lossless=True))


os.makedirs(FOLDER, exist_ok=True)
for name in os.listdir(FOLDER):
    os.remove(os.path.join(FOLDER, name))
gifs()
avifs()
tiffs()
turned()
print(f"{len(os.listdir(FOLDER))} files, {sum(os.path.getsize(os.path.join(FOLDER, n)) for n in os.listdir(FOLDER))} bytes")
