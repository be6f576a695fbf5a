// Server-sent events of an answer, one after the other. An `EventSource` can't send the page's half of a login.
/** @param {ReadableStream<Uint8Array>} body */
export async function* heard(body) {
  /** @type {ReadableWritablePair<string, any>} */
  const decoder = new TextDecoderStream();
  const reader = body.pipeThrough(decoder).getReader();
  let begun = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (begun + value).split('\n\n');
    begun = events.pop() ?? ''; // it has not come whole yet
    for (const event of events) {
      const fields = Object.fromEntries(event.split('\n').map(line => line.split(/: (.*)/s)));
      if (fields.event) yield { kind: fields.event, id: fields.id, data: JSON.parse(fields.data) };
    }
  }
}
