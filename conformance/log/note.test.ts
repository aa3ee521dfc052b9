import { describe, expect, it } from 'vitest';
import {
  cosign,
  cosignatureOf,
  formatCheckpoint,
  openCheckpoint,
  signCheckpoint,
  withSignature,
} from './checkpoint.ts';
import { readNoteKey, verifierKey } from './keys.ts';
import { logKey, newKey, ORIGIN, witnessKey } from './log.fixture.ts';
import { EMPTY_ROOT } from './merkle.ts';
import { formatNote, isSignatureOf, KEY_TYPE, keyIdOf, parseNote, signaturesOf } from './note.ts';

/** Of the documentation of Go's package note. */
const KEY = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const NOTE =
  'If you think cryptography is the answer to your problem,\nthen you don’t know what your problem is.\n'.replace(
    '’',
    "'",
  ) +
  '\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n';

const checkpoint = signCheckpoint(ORIGIN, 0, EMPTY_ROOT, logKey.secret);
const text = formatCheckpoint(checkpoint);
const open = (changed: string, key = logKey.open) => openCheckpoint(Buffer.from(changed), key);

describe('a signed note', () => {
  it("of Go's package note is read, and its signature is good", () => {
    const note = parseNote(Buffer.from(NOTE));
    const key = readNoteKey(KEY, KEY_TYPE.ed25519);
    const [signature] = signaturesOf(note, key, KEY_TYPE.ed25519);
    expect(isSignatureOf(note.text, signature?.value ?? Buffer.alloc(0), key.bytes)).toBe(true);
    expect(isSignatureOf(`${note.text} `, signature?.value ?? Buffer.alloc(0), key.bytes)).toBe(false);
    expect(formatNote(note)).toBe(NOTE);
    expect(verifierKey('PeterNeumann', KEY_TYPE.ed25519, key.bytes)).toBe(KEY);
  });

  it.each([
    ['no signature', 'text\n'],
    ['no blank line before the signatures', NOTE.replace('\n\n', '\n')],
    ['no line end', NOTE.slice(0, -1)],
    ['a carriage return', NOTE.replace('\n', '\r\n')],
    ['a hyphen for the dash', NOTE.replace('—', '-')],
    ['two spaces', NOTE.replace('— ', '—  ')],
    ['a plus in the name', NOTE.replace('PeterNeumann', 'Peter+Neumann')],
    ['a no-break space in the name', NOTE.replace('PeterNeumann', 'Peter\u00a0Neumann')],
    ['base64 without padding', NOTE.replace('nAM=', 'nAM')],
    ['base64 with other spare bits', NOTE.replace('nAM=', 'nAN=')],
    ['a signature of four bytes', NOTE.replace(/x08go.*/, 'x08gow==')],
    ['65 signatures', NOTE + NOTE.split('\n\n')[1]?.repeat(64)],
    ['100 kB', 'x'.repeat(100_000) + NOTE],
  ])('with %s is refused', (_what, changed) => {
    expect(() => parseNote(Buffer.from(changed))).toThrow();
  });

  it('that is not UTF-8 is refused', () => {
    expect(() => parseNote(Buffer.concat([Buffer.of(0xff), Buffer.from(NOTE)]))).toThrow('UTF-8');
  });

  it('may have empty lines in its text', () => {
    expect(parseNote(Buffer.from(`a\n\n\n${NOTE}`)).text).toContain('a\n\n\nIf');
  });
});

describe('a verifier key', () => {
  it('has a name, a type and an id that fit', () => {
    const key = verifierKey(ORIGIN, KEY_TYPE.cosignature, witnessKey.open.bytes);
    expect(readNoteKey(`${key}\n`, KEY_TYPE.cosignature)).toEqual({ ...witnessKey.open, name: ORIGIN });
    expect(() => readNoteKey(key, KEY_TYPE.ed25519)).toThrow('type 1');
    expect(() => readNoteKey(key.replace('log', 'lag'), KEY_TYPE.cosignature)).toThrow('its id');
    expect(() => readNoteKey('hello', KEY_TYPE.cosignature)).toThrow('neither');
    expect(() => readNoteKey(`x+00000000+${key.split('+')[2]?.slice(4)}`, KEY_TYPE.cosignature)).toThrow();
  });

  it('as PEM has no name', () => {
    expect(readNoteKey(logKey.pem, KEY_TYPE.ed25519)).toEqual(logKey.open);
  });
});

describe('a checkpoint', () => {
  it('is read as it was written', () => {
    expect(open(text)).toEqual(checkpoint);
    expect(open(text, { ...logKey.open, name: ORIGIN })).toEqual(checkpoint);
  });

  it('may have signatures of other keys', () => {
    const other = signCheckpoint(ORIGIN, 0, EMPTY_ROOT, newKey().secret).note.signatures;
    const more = formatNote({ ...checkpoint.note, signatures: [...other, ...checkpoint.note.signatures] });
    expect(open(more).size).toBe(0);
  });

  it.each([
    ['another size', /did not sign/, text.replace('\n0\n', '\n1\n')],
    ['a size with a zero before it', /origin, size and root/, text.replace('\n0\n', '\n00\n')],
    ['a size that is too large', /too large/, text.replace('\n0\n', '\n9007199254740993\n')],
    ['another origin', /did not sign/, text.replace(ORIGIN, 'log.example/other')],
    ['a root that is too short', /origin, size and root/, text.replace(/\n47.*\n/, '\nAAAA\n')],
    ['a line more', /did not sign/, text.replace('\n\n', '\nx\n\n')],
    ['a signature under another name', /did not sign/, text.replace(`— ${ORIGIN}`, '— other.example')],
  ])('with %s is refused', (_what, why, changed) => {
    expect(() => open(changed)).toThrow(why);
  });

  it('of another key, or of a log of another name, is refused', () => {
    expect(() => open(text, newKey().open)).toThrow('did not sign');
    expect(() => open(text, { ...logKey.open, name: 'log.example/other' })).toThrow(
      'it is of the log log.example/berth, and not of log.example/other',
    );
  });
});

describe('a cosignature', () => {
  const at = Date.parse('2026-05-01T10:00:00Z');
  const signature = cosign(checkpoint, 'witness.example/w1', witnessKey.secret, at);
  const cosigned = withSignature(checkpoint, signature);

  it('is of a time, and the log signature stays good beside it', () => {
    const read = open(formatCheckpoint(cosigned));
    expect(cosignatureOf(read, witnessKey.open)).toMatchObject({ name: 'witness.example/w1', wallMs: at });
    expect(cosignatureOf(read, { ...witnessKey.open, name: 'w2' })).toBeUndefined();
    expect(cosignatureOf(read, logKey.open)).toBeUndefined();
    expect(cosignatureOf(checkpoint, witnessKey.open)).toBeUndefined();
  });

  it('replaces an earlier one of its key', () => {
    const again = withSignature(
      cosigned,
      cosign(checkpoint, 'witness.example/w1', witnessKey.secret, at + 5000),
    );
    expect(again.note.signatures).toHaveLength(2);
    expect(cosignatureOf(again, witnessKey.open)?.wallMs).toBe(at + 5000);
  });

  it('is of one checkpoint and one time', () => {
    const grown = signCheckpoint(ORIGIN, 1, EMPTY_ROOT, logKey.secret);
    expect(() => cosignatureOf(withSignature(grown, signature), witnessKey.open)).toThrow(
      'not of this checkpoint',
    );
    const later = Buffer.from(signature.value);
    later.writeUInt8(later.readUInt8(7) ^ 1, 7);
    const moved = withSignature(checkpoint, { ...signature, value: later });
    expect(() => cosignatureOf(moved, witnessKey.open)).toThrow('not of this checkpoint');
    const short = withSignature(checkpoint, { ...signature, value: signature.value.subarray(0, 71) });
    expect(() => cosignatureOf(short, witnessKey.open)).toThrow('cut short');
  });

  it('does not count as a signature of the log, nor the log’s signature as a cosignature', () => {
    const { secret, open: both } = logKey;
    const asLog = {
      ...cosign(checkpoint, ORIGIN, secret, at),
      keyId: keyIdOf(ORIGIN, KEY_TYPE.ed25519, both.bytes),
    };
    expect(() => open(formatNote({ ...checkpoint.note, signatures: [asLog] }))).toThrow('did not sign');
  });
});
