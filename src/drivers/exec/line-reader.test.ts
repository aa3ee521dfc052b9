import { expect, it } from 'vitest';
import { LineReader } from './line-reader.ts';

it('makes no text of lines that are not read, except of the last one of each chunk', () => {
  const seen: (string | number)[] = [];
  let isRead = true;
  const reader = new LineReader(10, {
    onLine: (line) => void seen.push(line),
    onTooLong: (start) => void seen.push(start),
    isRead: () => isRead,
    onSkipped: (lines) => void seen.push(lines),
  });
  for (const chunk of ['a\nb', '\n', 'c\nd\ne\nf', 'g\n', '\n\nh\n']) {
    reader.push(Buffer.from(chunk));
    isRead = false;
  }
  expect(seen).toEqual(['a', 'b', 2, 'e', 'fg', 2, 'h']);
});
