import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { childrenOf, descend, element, parseXml, serializeXml, textOf, XmlError } from './xml.ts';

/** Any text that XML 1.0 allows, with extra characters that need escaping. */
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ...['<', '>', '&', '"', "'", '\t', '\n', '\r', ']]>', '&lt;', '</name><hostdev/>', ' '],
      ),
      fc.string({ unit: 'binary' }).filter((part) => !hasRefused(part)),
    ),
  )
  .map((parts) => parts.join(''));

function hasRefused(part: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML refuses
  return !part.isWellFormed() || /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/.test(part);
}

describe('what is written is read again', () => {
  it('any text, as content and as an attribute [xml-round-trip]', () => {
    fc.assert(
      fc.property(text, text, (content, attribute) => {
        const written = element('a', { b: attribute }, [element('c', {}, content === '' ? [] : [content])]);
        expect(parseXml(serializeXml(written))).toEqual(written);
      }),
    );
  });

  it('a long text', () => {
    const long = `${'x'.repeat(70_000)}<&${'y'.repeat(70_000)}`;
    expect(textOf(parseXml(serializeXml(element('a', {}, [long]))))).toBe(long);
  });
});

describe('what is written', () => {
  it('keeps text out of the markup', () => {
    expect(serializeXml(element('name', { of: 'a"b\'\n' }, ['</name><hostdev/>\r']))).toBe(
      '<name of="a&quot;b&apos;&#10;">&lt;/name&gt;&lt;hostdev/&gt;&#13;</name>',
    );
  });

  it('leaves an attribute out that is undefined', () => {
    expect(serializeXml(element('a', { b: undefined, c: 0 }))).toBe('<a c="0"/>');
  });

  it.each(['\0', '\u0008', '\u001b', '\ud800', '\udc00\ud800', '\ufffe', '\uffff'])(
    'is refused if XML cannot represent it: %j',
    (character) => {
      expect(() => serializeXml(element('a', {}, [`x${character}`]))).toThrow(XmlError);
      expect(() => serializeXml(element('a', { b: character }))).toThrow(XmlError);
    },
  );

  it.each(['', 'a b', 'a>', '1a', 'a/', 'a:b:c', ':a'])('is refused under the name %j', (name) => {
    expect(() => serializeXml(element(name))).toThrow('is not an XML name');
    expect(() => serializeXml(element('a', { [name]: '' }))).toThrow('is not an XML name');
  });
});

describe('what is read', () => {
  it('is found by name', () => {
    const disks = descend(parseXml('<d><os/><devices> <disk n="1"/><disk n="2"/></devices></d>'), 'devices');
    expect(childrenOf(disks ?? element('x'), 'disk').map(({ attributes }) => attributes['n'])).toEqual([
      '1',
      '2',
    ]);
    expect(descend(disks, 'disk', 'source')).toBeUndefined();
    expect(textOf(descend(disks, 'none'))).toBe('');
  });

  it('may hold CDATA and comments', () => {
    expect(textOf(parseXml('<?xml version="1.0"?><!-- c --><a>x<![CDATA[<&]]>y</a>'))).toBe('x<&y');
  });

  it.each([
    ['<!DOCTYPE a><a/>', 'it has a DOCTYPE'],
    ['<!DOCTYPE a [<!ENTITY b "cc">]><a>&b;</a>', "Named entity isn't defined: &b;"],
    ['<a>&nbsp;</a>', "Named entity isn't defined: &nbsp;"],
    ['<a>&b;</a>', "Named entity isn't defined: &b;"],
    ['<a b="1" b="2"/>', 'Duplicate attribute'],
    ['<a>\0</a>', 'Invalid character'],
    ['<a><b></a>', 'Missing end tag for element b'],
    ['<a>', 'Missing end tag for element a'],
    ['', 'Root element is missing'],
    ['error: no such domain', 'Root element is missing'],
    ['<a/><b/>', 'Extra content at the end of the document'],
  ])('is refused: %j', (document, reason) => {
    expect(() => parseXml(document)).toThrow(XmlError);
    expect(() => parseXml(document)).toThrow(reason);
  });

  it('is refused if it is nested too deeply', () => {
    expect(() => parseXml('<a>'.repeat(100_000))).toThrow(XmlError);
  });
});
