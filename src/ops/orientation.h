// How EXIF data says an image is to be turned, and turning it. Of EXIF only that one tag is read.
#pragma once

#include "base/bytes.h"
#include "ops/image.h"

namespace forebay::ops {

// Of the stored image: first flipped, then the axes swapped.
struct Orientation {
  bool swap_axes = false, flip_x = false, flip_y = false;

  bool plain() const { return !swap_axes && !flip_x && !flip_y; }
  Size Turned(const Size& stored) const {
    return swap_axes ? Size{stored.height, stored.width} : stored;
  }
  // Which pixels of the stored image become `region` of the turned one.
  Rect Stored(const Rect& region, const Size& stored) const;
  // `pixels` are what Stored named.
  ImageView Turn(const ImageView& pixels, Image* into) const;
};

// Of a TIFF block, with or without "Exif\0\0" before it. Plain where there is nothing to be read.
Orientation OrientationOf(ByteView exif);

// The EXIF block of a JPEG file, or nothing.
ByteView ExifOfJpeg(ByteView file);

}  // namespace forebay::ops
