/** What a caller may put where a name, an id or a number is expected. */
export const hostileValues = [
  'constructor',
  '__proto__',
  'toString',
  '%00',
  '%',
  '%ff%fe',
  '%ED%A0%80',
  '1e999',
  '9'.repeat(400),
  '-1',
  '..%2f..%2f',
  '%27%22%3C%3E%3B--',
  'x'.repeat(9_000),
];

const FORM = 'application/x-www-form-urlencoded';
const PART = 'Content-Disposition: form-data; name="csrf"';

/** Bodies that are no form, by what they claim to be. */
const BROKEN_BODIES: readonly (readonly [type: string | undefined, body: string | Uint8Array])[] = [
  ['multipart/form-data', 'csrf=x'],
  ['multipart/form-data; boundary=', '--\r\n'],
  ['multipart/form-data; boundary=b', `--b\r\n${PART}\r\n\r\nx`],
  ['multipart/form-data; boundary=b', `--b\r\n${PART}; filename="\r\n\r\n\r\n--b--`],
  ['multipart/form-data; boundary=b', Uint8Array.of(0xff, 0x00, 0xfe)],
  ['multipart/form-data; boundary=b', ''],
  [`${FORM}; charset=none`, 'csrf=%'],
  [FORM, '&&==&%zz=%&csrf=%ff'],
  [FORM, Uint8Array.of(0x63, 0x3d, 0xff, 0xc0, 0x00)],
  [FORM, 'csrf=x&'.repeat(9_000)],
  ['application/json', '{"csrf":'],
  ['text/plain', 'csrf'],
  ['/', 'csrf'],
  [undefined, 'csrf'],
];

export interface HostileRequest {
  path: string;
  init?: RequestInit;
}

/** Every path with each hostile value in the place of its parameters and under each name of a query. */
export function hostileReads(paths: readonly string[], queryNames: readonly string[]): HostileRequest[] {
  return paths.flatMap((path) =>
    hostileValues.map((value) => ({
      path: `${path.replace(/:\w+/g, value)}${path.includes('?') ? '&' : '?'}${queryNames.map((name) => `${name}=${value}`).join('&')}`,
    })),
  );
}

/** Every path with each body that is no form: one path of each kind will do, since bodies are read before a path's own code. */
export function brokenForms(paths: readonly string[]): HostileRequest[] {
  return paths.flatMap((path) => BROKEN_BODIES.map(([type, body]) => toForm(path, type, body)));
}

/** Every path with forms whose fields are hostile values. `csrf`: of the session. */
export function hostileForms(
  paths: readonly string[],
  fieldNames: readonly string[],
  csrf: string,
): HostileRequest[] {
  const bodies = [
    ...hostileValues.map((value) => `csrf=${csrf}&${fieldNames.map((name) => `${name}=${value}`).join('&')}`),
    `csrf=${'%C3%A9'.repeat(csrf.length)}`,
    `${'__proto__[csrf]=x&constructor=y&'.repeat(50)}csrf=${csrf}`,
  ];
  return paths.flatMap((path) => bodies.map((body) => toForm(path, FORM, body)));
}

function toForm(path: string, type: string | undefined, body: string | Uint8Array): HostileRequest {
  return {
    path,
    init: { method: 'POST', body, ...(type !== undefined && { headers: { 'content-type': type } }) },
  };
}
