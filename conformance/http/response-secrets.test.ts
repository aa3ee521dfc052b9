import { describe, expect, it } from 'vitest';
import { ResponseSecrets } from './response-secrets.ts';

function setUp() {
  const secrets: string[] = [];
  const found = new ResponseSecrets((_name, secret) => secrets.push(secret));
  const keep = (path: string, body: unknown, headers: Record<string, string> = {}, status = 200) =>
    found.keep(path, { status, headers, body: JSON.stringify(body), firstByteMs: 1, totalMs: 1 });
  return { secrets, keep };
}

describe('a secret', () => {
  it('is each text of a token answer that is long enough', () => {
    const { secrets, keep } = setUp();
    const kinds = { token_type: 'Bearer token', scope: 'read and write', expires_in: 3600 };
    keep('/auth/token', {
      access_token: 'short',
      ...kinds,
      data: [{ refresh_token: 'refresh-1', hint: 'abc' }],
    });
    expect(secrets).toEqual(['short', 'refresh-1']);
  });

  it('is no text of a refusal, or of another answer', () => {
    const { secrets, keep } = setUp();
    keep('/auth/token', { error: { message: 'not authorized' } }, {}, 401);
    keep('/instances', { name: 'a long enough name' });
    expect(secrets).toEqual([]);
  });

  it('is the value of each cookie of any answer', () => {
    const { secrets, keep } = setUp();
    const cookies = 'sid=SESSION-1; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/, a=1, b=SESSION==2; Secure';
    expect(keep('/instances', {}, { 'set-cookie': cookies })).toEqual({
      'set-cookie':
        'sid=[redacted: cookie]; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/, a=1, b=[redacted: cookie]; Secure',
    });
    expect(secrets).toEqual(['SESSION-1', 'SESSION==2']);
  });

  it('is never written, even if a target sets a thousand cookies and some are kept', () => {
    const { secrets, keep } = setUp();
    for (let n = 0; n < 1000; n++)
      expect(keep('/', {}, { 'set-cookie': `s=SESSION-${n}` })).toEqual({
        'set-cookie': 's=[redacted: cookie]',
      });
    expect(secrets).toHaveLength(50);
  });
});
