#!/usr/bin/env node
// More that a driver for Berth can do: driver.mjs, which is beside it, with volumes, and over HTTP.
//
//     full-driver.mjs FOLDER [UNITS]                    over standard input and output, as `command:`
//     full-driver.mjs FOLDER [UNITS] --listen PORT      over HTTP on this host, as `url:`; BERTH_DRIVER_TOKEN is its token
//
// A volume is a folder, which a machine that has it finds in its home as volumes/REF.
import { timingSafeEqual } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { answer as answerMachine, exists, FOLDER, failed, INFO, reply, serve } from './driver.mjs';

const CAPABILITIES = { ...INFO.capabilities, attach_volume: 'hot', resize_volume: 'attached' };
const VOLUMES = `${FOLDER}/.volumes`;
const volumeRefs = () =>
  (existsSync(VOLUMES) ? readdirSync(VOLUMES) : []).filter((name) => !name.startsWith('.'));
const done = (value) => ({ outcome: 'done', value });

const volume = (ref) => {
  const folder = `${VOLUMES}/${ref}`;
  const link = (to) => `${FOLDER}/${to}/disk/volumes/${ref}`;
  const known = () => JSON.parse(readFileSync(`${folder}/volume.json`, 'utf8'));
  const change = (fields) => {
    writeFileSync(`${folder}/volume.json.new`, JSON.stringify({ ...known(), ...fields }));
    renameSync(`${folder}/volume.json.new`, `${folder}/volume.json`);
  };
  const it = {
    exists: () => existsSync(folder),
    observe: known,
    make({ size_gb, note }) {
      const fresh = `${VOLUMES}/.new-${ref}`;
      rmSync(fresh, { recursive: true, force: true });
      mkdirSync(`${fresh}/data`, { recursive: true });
      const fields = { ref, created_at: Date.now(), size_gb, note, attached_to: [] };
      writeFileSync(`${fresh}/volume.json`, JSON.stringify(fields));
      renameSync(fresh, folder);
    },
    resize: (size_gb) => change({ size_gb }),
    // The record first: a link without one would never be removed.
    attach(to) {
      change({ attached_to: [...new Set([...known().attached_to, to])] });
      mkdirSync(`${FOLDER}/${to}/disk/volumes`, { recursive: true });
      rmSync(link(to), { force: true });
      symlinkSync(`${folder}/data`, link(to));
    },
    detach(from) {
      rmSync(link(from), { force: true });
      change({ attached_to: known().attached_to.filter((each) => each !== from) });
    },
    destroy() {
      for (const each of known().attached_to) it.detach(each);
      rmSync(folder, { recursive: true });
    },
  };
  return it;
};

function answerVolume(request) {
  const { method, ref = '', spec, size_gb, machine: to } = request;
  const it = volume(ref);
  if (method === 'volumes.list')
    return { answer: 'listed', items: volumeRefs().map((each) => volume(each).observe()) };
  if (method === 'volumes.get')
    return it.exists() ? { answer: 'observed', value: it.observe() } : { answer: 'gone' };
  if (method === 'volumes.destroy') {
    if (it.exists()) it.destroy();
    return done(null);
  }
  if (method === 'volumes.create') {
    if (!it.exists()) it.make(spec);
    return done(it.observe());
  }
  if (!it.exists()) return failed('gone', `there is no volume ${ref}`);
  if (method === 'volumes.resize') {
    if (size_gb < it.observe().size_gb) return failed('invalid', 'a volume does not shrink');
    it.resize(size_gb);
    return done(it.observe());
  }
  if (method === 'volumes.attach' && !exists(to)) return failed('gone', `there is no machine ${to}`);
  if (method === 'volumes.attach') it.attach(to);
  else it.detach(to);
  return done(null);
}

async function answer(request) {
  if (request.method === 'info') return { ...INFO, capabilities: CAPABILITIES };
  // Over HTTP a request may have waited anywhere. Only a step has a cookie.
  if ('cookie' in request && Date.now() > request.expires_at)
    return failed('transient', 'the request came too late and was not begun');
  if (request.method.startsWith('volumes.')) return answerVolume(request);
  const answered = await answerMachine(request);
  if (request.method === 'destroy' && answered.outcome === 'done')
    for (const each of volumeRefs()) volume(each).detach(request.ref);
  return answered;
}

/** Whether a request has the token. */
function isAllowed({ authorization = '' }) {
  const token = process.env.BERTH_DRIVER_TOKEN;
  const [expected, given] = [Buffer.from(`Bearer ${token}`), Buffer.from(authorization)];
  return !token || (given.length === expected.length && timingSafeEqual(given, expected));
}

let last = Promise.resolve();
/** One request after another. */
const inTurn = (request) => {
  last = last.then(() => reply(request, answer));
  return last;
};

const [flag, port] = process.argv.slice(4);
if (flag === '--listen') {
  const server = createServer(async (incoming, outgoing) => {
    if (!isAllowed(incoming.headers)) return outgoing.writeHead(401).end();
    const chunks = await incoming.toArray();
    const text = JSON.stringify(await inTurn(JSON.parse(Buffer.concat(chunks))));
    outgoing.writeHead(200, { 'Content-Type': 'application/json' }).end(text);
  });
  server.listen(Number(port), '127.0.0.1', () =>
    process.stdout.write(`http://127.0.0.1:${server.address().port}/\n`),
  );
} else await serve(answer);
