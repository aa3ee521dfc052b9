/** What to do about a TLS failure, by the words in which the transport tells it. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/has expired/, 'renew it on the server (and look at the clock of this machine)'],
  [/is not valid yet/, 'look at the clock of this machine, and at the dates of the certificate'],
  [
    /is not for /,
    'write the base_url with a name that the certificate is for, or have one made for this name',
  ],
  [
    /is self-signed|authority that is not trusted|issuer that is unknown/,
    'give the certificate of its authority with --ca-file; where that is a public one, let the server send its intermediate certificates too',
  ],
  [
    /perhaps plain HTTP/,
    'does the base_url begin with http:// and not with https://, or has it another port?',
  ],
  [
    /asks for a certificate of the client/,
    'the contract knows bearer credentials only: switch that off for this name',
  ],
  [/no version of TLS|no cipher|too weak/, 'let the server speak TLS 1.2 or 1.3 with usual ciphers'],
  [/no certificate for this name/, 'have the server serve a certificate for this name'],
];

export function tlsAdvice(message: string): string {
  const [, advice] = ADVICE.find(([pattern]) => pattern.test(message)) ?? [];
  return advice ?? 'look at what the server logs of the TLS handshake';
}
