/** `npm run bench -- NAME [FLAGS]` runs bench/NAME.ts; without a name, the polled read. */
const [name = ''] = process.argv.slice(2);
const isNamed = name !== '' && !name.startsWith('-');
if (isNamed) process.argv.splice(2, 1);
await import(`./${isNamed ? name : 'polled-read'}.ts`);
