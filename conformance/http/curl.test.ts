import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isPrintable } from '../text/printable.ts';
import { toCurl } from './curl.ts';
import type { HttpRequest } from './transport.ts';

const url = 'http://gpu.example/v1/instances';
const POST: HttpRequest = {
  method: 'POST',
  url,
  headers: { 'content-type': 'application/json' },
  body: '{"a":1}',
};

describe('the command', () => {
  it('is one that a person would write', () => {
    const headers = {
      accept: 'application/json',
      'user-agent': 'suite',
      authorization: 'Bearer [redacted: api key]',
    };
    expect(toCurl({ method: 'GET', url: `${url}?region=a`, headers })).toBe(
      `curl -i -sS -X GET '${url}?region=a' -H 'accept: application/json' -H 'user-agent: suite' ` +
        '-H "authorization: Bearer $BERTH_API_KEY"',
    );
    expect(toCurl(POST)).toBe(
      `curl -i -sS -X POST ${url} -H 'content-type: application/json' -H 'User-Agent:' -H 'Accept:' -H 'Expect:' ` +
        `--data-binary '{"a":1}'`,
    );
  });

  it.each([
    ['Bearer [redacted: api key]', '"authorization: Bearer $BERTH_API_KEY"'],
    ['Bearer [redacted: second api key]', '"authorization: Bearer $BERTH_SECOND_API_KEY"'],
    ['Bearer [redacted: access token]', '"authorization: Bearer $BERTH_ACCESS_TOKEN"'],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's.
    ['Bearer [redacted: api key]x', '"authorization: Bearer ${BERTH_API_KEY}x"'],
    ['Bearer $x[redacted: api key]!', `'authorization: Bearer $x'"$BERTH_API_KEY"'!'`],
    ['Bearer wrong', `'authorization: Bearer wrong'`],
    ['Bearer [redacted: private key]', `'authorization: Bearer [redacted: private key]'`],
    ['Bearer [redacted: constructor]', `'authorization: Bearer [redacted: constructor]'`],
  ])('writes %s as %s', (authorization, written) => {
    expect(toCurl({ method: 'GET', url, headers: { authorization } })).toContain(`-H ${written}`);
  });

  it('says what curl may not do to a path', () => {
    expect(toCurl({ method: 'GET', url: 'https://x/a/../b[1]', headers: {} })).toContain(
      `--globoff --path-as-is --http1.1 'https://x/a/../b[1]'`,
    );
  });

  it('is there for an address that is none', () => {
    expect(toCurl({ method: 'GET', url: 'http://x:99999é', headers: {} })).toContain('http://x:99999');
  });

  it('can be shown on a terminal, whatever the request holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (body) => {
        expect(isPrintable(toCurl({ ...POST, body }).replaceAll('\n', ''))).toBe(true);
      }),
    );
  });
});
